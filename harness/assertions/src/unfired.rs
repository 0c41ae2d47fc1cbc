//! Describes a scripted fault that has not fired, and the operations that almost matched.

use servicebus_control_api::{Pick, ScriptedFault};

use crate::text;

/// Returns the failure for a fault that has not fired: its source code, what almost matched, and its line.
pub fn unfired(written: &str, near: &str, at: Option<&str>) -> String {
    let place = at.map_or_else(String::new, |at| format!("\n  scripted at {at}"));
    format!("a fault never fired: {written}\n  {near}{place}")
}

/// Describes the operations of the fault's kind that came, and suggests one of the `entities` if that of the fault is none.
pub fn near<'a>(met: &ScriptedFault, entities: impl Iterator<Item = &'a str>) -> String {
    let (one, several) = met.fault.operation.nouns();
    let count = |number: u64| match number {
        1 => format!("1 {one}"),
        number => format!("{number} {several}"),
    };
    let mut parts = Vec::new();
    match (met.matched, due_at(met)) {
        (0, _) => {}
        (matched, 0) => parts.push(format!("only {} came", count(matched))),
        (matched, taken) => parts.push(format!(
            "{} came, and another fault fired at {taken} of them, which goes first",
            count(matched)
        )),
    }
    for (number, place) in [
        (met.different, "without what was asked for"),
        (met.elsewhere, "in other entities"),
    ] {
        match number {
            0 => {}
            number if parts.is_empty() => parts.push(format!("{} came, {place}", count(number))),
            number => parts.push(format!("{number} {place}")),
        }
    }
    let came = match parts.is_empty() {
        true => format!("no {one} came"),
        false => parts.join(", and "),
    };
    let wanted = met.fault.filter.entity.as_deref();
    let suggested = wanted.and_then(|wanted| misspelt(wanted, entities));
    match suggested {
        Some(name) => format!("{came}; did you mean the entity {name:?}?"),
        None => came,
    }
}

/// Returns at how many operations an unfired fault was due: another one fired there, because an operation has the effect of
/// one fault only.
fn due_at(met: &ScriptedFault) -> u64 {
    match met.fault.pick {
        Pick::Counted {
            nth, every, times, ..
        } => {
            let since = met.matched.checked_sub(nth);
            let due = since.map_or(0, |since| since / every + 1);
            times.map_or(due, |times| due.min(times))
        }
        // Chance decides, too.
        Pick::Random { .. } => 0,
    }
}

/// Returns the entity whose name this one resembles, if it is not the name of an entity itself.
pub fn misspelt<'a>(wanted: &str, entities: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (owner, _) = wanted.split_once("/$").unwrap_or((wanted, ""));
    let owner = owner.to_lowercase();
    let nearest = entities.min_by_key(|name| text::distance(&owner, &name.to_lowercase()))?;
    let is_other = nearest.to_lowercase() != owner;
    (is_other && text::is_near(&owner, nearest)).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(matched: u64, different: u64, elsewhere: u64) -> ScriptedFault {
        let fault = serde_json::json!({
            "id": 1, "operation": "complete", "nth": 2, "every": 1, "times": 1, "effect": "lose-lock",
            "matched": matched, "different": different, "elsewhere": elsewhere, "hits": 0,
        });
        serde_json::from_value(fault).unwrap()
    }

    #[test]
    fn near_matches_are_described() {
        let near = |met: ScriptedFault| near(&met, std::iter::empty());
        assert_eq!(near(met(0, 0, 0)), "no completion came");
        assert_eq!(near(met(1, 0, 0)), "only 1 completion came");
        let another = "3 completions came, and another fault fired at 1 of them, which goes first";
        assert_eq!(near(met(3, 0, 0)), another);
        assert_eq!(near(met(0, 0, 3)), "3 completions came, in other entities");
        let all =
            "only 1 completion came, and 1 without what was asked for, and 4 in other entities";
        assert_eq!(near(met(1, 1, 4)), all);
    }

    #[test]
    fn an_entity_is_suggested_for_one_that_does_not_exist() {
        for (wanted, suggested) in [
            ("order", "; did you mean the entity \"orders\"?"),
            ("Orders", ""),
            ("orders/$DeadLetterQueue", ""),
            ("replies", ""),
        ] {
            let mut met = met(0, 0, 0);
            met.fault.filter.entity = Some(wanted.to_owned());
            let text = near(&met, ["audit", "orders"].into_iter());
            assert_eq!(text, format!("no completion came{suggested}"));
        }
    }

    #[test]
    fn a_known_source_location_is_shown() {
        let fault = "a fault never fired: on(send)\n  no send came";
        assert_eq!(unfired("on(send)", "no send came", None), fault);
        let placed = format!("{fault}\n  scripted at tests/it.rs:7");
        assert_eq!(
            unfired("on(send)", "no send came", Some("tests/it.rs:7")),
            placed
        );
    }
}
