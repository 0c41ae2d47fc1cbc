//! Two runs of one suite, laid side by side.

use super::{CaseRun, Known, Ledger, Observation, Outcome, Run, normalised};

/// How the outcome of a case is called among its observations.
const OUTCOME: &str = "outcome";

/// Something that one target shows otherwise than the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What was observed.
    pub what: String,
    /// What the left target showed; nothing where it showed no such thing at this place.
    pub left: Option<String>,
    /// What the right target showed.
    pub right: Option<String>,
    /// The id of the entry of the ledger that knows it.
    pub known: Option<String>,
}

/// One case at both targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// The path of the case.
    pub case: String,
    /// Everything that was observed, in order, the outcome last; what is alike has both sides equal.
    pub rows: Vec<Difference>,
    /// What could not be checked, by the name of the target.
    pub unchecked: Vec<(String, String)>,
}

/// Two runs side by side.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// What the left target is called.
    pub left: String,
    /// What the right target is called.
    pub right: String,
    /// The cases in the order of the suite.
    pub cases: Vec<Compared>,
    /// What the ledger knows and did not occur, although its case was compared to its end.
    pub vanished: Vec<Known>,
}

impl Difference {
    /// Whether both targets show the same.
    pub fn is_alike(&self) -> bool {
        self.left == self.right
    }
}

impl Compared {
    /// Returns what differs.
    pub fn differences(&self) -> impl Iterator<Item = &Difference> {
        self.rows.iter().filter(|row| !row.is_alike())
    }
}

impl Comparison {
    /// Compares two runs of one suite.
    pub fn new(left: Run, right: Run, ledger: &Ledger) -> Self {
        let mut cases = Vec::new();
        let mut others = right.cases;
        for one in left.cases {
            let at = others.iter().position(|other| other.case == one.case);
            let other = at.map(|at| others.remove(at));
            cases.push(compared(
                [(&left.target, Some(one)), (&right.target, other)],
                ledger,
            ));
        }
        for other in others {
            cases.push(compared(
                [(&left.target, None), (&right.target, Some(other))],
                ledger,
            ));
        }
        let vanished = unmatched_entries(&cases, ledger);
        Self {
            left: left.target,
            right: right.target,
            cases,
            vanished,
        }
    }

    /// Returns the differences that the ledger does not know, each with its case.
    pub fn new_differences(&self) -> impl Iterator<Item = (&str, &Difference)> {
        self.cases.iter().flat_map(|compared| {
            let unknown = compared.differences().filter(|row| row.known.is_none());
            unknown.map(|row| (compared.case.as_str(), row))
        })
    }

    /// Whether nothing differs but what the ledger knows.
    pub fn is_as_known(&self) -> bool {
        self.new_differences().next().is_none()
    }
}

fn compared(sides: [(&String, Option<CaseRun>); 2], ledger: &Ledger) -> Compared {
    let mut unchecked = Vec::new();
    for (target, run) in &sides {
        if let Some(Outcome::Uncheckable(what)) = run.as_ref().map(|run| &run.outcome) {
            unchecked.push(((*target).clone(), normalised(what)));
        }
    }
    let case = sides
        .iter()
        .find_map(|(_, run)| Some(run.as_ref()?.case.clone()));
    let case = case.unwrap_or_default();
    let mut lines = sides.map(|(_, run)| lines(run));
    agree_on_recording(&mut lines);
    let [left, right] = lines;
    let mut rows = match unchecked.is_empty() {
        true => aligned(&left, &right),
        // Both say the same until one of them has to stop; what has no order says nothing then, nor does the wire, which
        // was heard from the beginning of a namespace to its end.
        false => {
            let is_ordered = |line: &&Observation| !line.aside && !line.on_wire;
            let ordered = |lines: &[Observation]| lines.iter().take_while(is_ordered).count();
            let common = ordered(&left).min(ordered(&right));
            aligned(&left[..common], &right[..common])
        }
    };
    for row in rows.iter_mut().filter(|row| row.left != row.right) {
        row.known = ledger.find(&case, row).map(|known| known.id.clone());
    }
    Compared {
        case,
        rows,
        unchecked,
    }
}

/// Says once that the clients of one side did not come by the recorder, instead of everything that was said on the other.
fn agree_on_recording(sides: &mut [Vec<Observation>; 2]) {
    let is_recorded = |side: &Vec<Observation>| side.iter().any(|line| line.on_wire);
    if is_recorded(&sides[0]) == is_recorded(&sides[1]) {
        return;
    }
    for side in sides {
        if let Some(first) = side.iter().position(|line| line.on_wire) {
            side[first].what = "on the wire".to_owned();
            side[first].value = "recorded".to_owned();
            let mut at = 0..;
            side.retain(|line| at.next() == Some(first) || !line.on_wire);
        }
    }
}

/// What a case observed, normalised: in order, then what tasks observed beside each other, then what was heard on the
/// wire, with its outcome last; a case that could not be checked has none.
fn lines(run: Option<CaseRun>) -> Vec<Observation> {
    let Some(run) = run else {
        return vec![Observation {
            what: OUTCOME.to_owned(),
            value: "not among the cases".to_owned(),
            ..Observation::default()
        }];
    };
    let observed = run.observations.into_iter().map(|observation| Observation {
        what: normalised(&observation.what),
        value: normalised(&observation.value),
        ..observation
    });
    let (recorded, observed): (Vec<_>, Vec<_>) =
        observed.partition(|observation| observation.on_wire);
    let (mut aside, ordered): (Vec<_>, Vec<_>) = observed
        .into_iter()
        .partition(|observation| observation.aside);
    aside.sort();
    let outcome = match run.outcome {
        Outcome::Uncheckable(_) => None,
        other => Some(Observation {
            what: OUTCOME.to_owned(),
            value: normalised(&other.to_string()),
            ..Observation::default()
        }),
    };
    let observed = ordered.into_iter().chain(aside);
    observed.chain(recorded).chain(outcome).collect()
}

/// Lays two lists side by side: what both have in the same order stands beside itself, and between that, what is about
/// the same thing stands side by side.
fn aligned(left: &[Observation], right: &[Observation]) -> Vec<Difference> {
    let lengths = common_lengths(left, right);
    let (mut at, mut other) = (0, 0);
    let (mut only_left, mut only_right) = (Vec::new(), Vec::new());
    let mut rows = Vec::new();
    while at < left.len() || other < right.len() {
        let both = at < left.len() && other < right.len();
        if both && left[at] == right[other] {
            rows.append(&mut paired(&mut only_left, &mut only_right));
            rows.push(row(Some(&left[at]), Some(&right[other])));
            (at, other) = (at + 1, other + 1);
        } else if other == right.len() || (both && lengths[at + 1][other] >= lengths[at][other + 1])
        {
            only_left.push(&left[at]);
            at += 1;
        } else {
            only_right.push(&right[other]);
            other += 1;
        }
    }
    rows.append(&mut paired(&mut only_left, &mut only_right));
    rows
}

/// How many observations both have in common, in order, from each pair of places on.
fn common_lengths(left: &[Observation], right: &[Observation]) -> Vec<Vec<u16>> {
    let mut lengths = vec![vec![0; right.len() + 1]; left.len() + 1];
    for (at, one) in left.iter().enumerate().rev() {
        for (other, two) in right.iter().enumerate().rev() {
            lengths[at][other] = match one == two {
                true => lengths[at + 1][other + 1] + 1,
                false => lengths[at + 1][other].max(lengths[at][other + 1]),
            };
        }
    }
    lengths
}

fn paired(left: &mut Vec<&Observation>, right: &mut Vec<&Observation>) -> Vec<Difference> {
    let mut rows = Vec::new();
    for one in left.drain(..) {
        let same = right.iter().position(|other| other.what == one.what);
        let other = same.map(|at| {
            // What comes before it has nothing beside it, or the order would be lost.
            rows.extend(right.drain(..at).map(|other| row(None, Some(other))));
            right.remove(0)
        });
        rows.push(row(Some(one), other));
    }
    rows.extend(right.drain(..).map(|other| row(None, Some(other))));
    rows
}

fn row(left: Option<&Observation>, right: Option<&Observation>) -> Difference {
    let what = left.or(right).map(|either| either.what.clone());
    Difference {
        what: what.unwrap_or_default(),
        left: left.map(|left| left.value.clone()),
        right: right.map(|right| right.value.clone()),
        known: None,
    }
}

/// What the ledger knows and no case observed: its entry may go, if its cases were compared.
fn unmatched_entries(cases: &[Compared], ledger: &Ledger) -> Vec<Known> {
    let unseen = ledger.known.iter().filter(|known| {
        let mut meant = cases.iter().filter(|compared| {
            compared.case == known.case
                || (known.case.ends_with("::") && compared.case.starts_with(&known.case))
        });
        let mut any = false;
        let decided = meant.all(|compared| {
            any = true;
            let mut rows = compared.rows.iter();
            compared.unchecked.is_empty() && !rows.any(|row| row.known.as_ref() == Some(&known.id))
        });
        any && decided
    });
    unseen.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(pairs: &[(&str, &str)]) -> Vec<Observation> {
        let observations = pairs.iter().map(|(what, value)| Observation {
            what: (*what).to_owned(),
            value: (*value).to_owned(),
            ..Observation::default()
        });
        observations.collect()
    }

    fn run(target: &str, observations: &[(&str, &str)], outcome: Outcome) -> Run {
        Run {
            target: target.to_owned(),
            cases: vec![CaseRun {
                case: "a::b".to_owned(),
                outcome,
                observations: list(observations),
            }],
        }
    }

    #[test]
    fn equal_observations_are_aligned() {
        let left = list(&[
            ("send", "ok"),
            ("a message", "1"),
            ("count", "2"),
            ("end", "ok"),
        ]);
        let right = list(&[
            ("send", "ok"),
            ("a message", "2"),
            ("peek", "x"),
            ("end", "ok"),
        ]);
        let rows = aligned(&left, &right);
        let shown = rows.iter().map(|row| {
            let side = |side: &Option<String>| side.as_deref().unwrap_or("-").to_owned();
            format!("{} {} {}", row.what, side(&row.left), side(&row.right))
        });
        assert_eq!(
            Vec::from_iter(shown),
            [
                "send ok ok",
                "a message 1 2",
                "count 2 -",
                "peek - x",
                "end ok ok"
            ]
        );
    }

    #[test]
    fn order_is_compared_and_ids_are_not() {
        let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
        let left = run("l", &[("m", "1"), ("m", "2"), ("id", id)], Outcome::Ok);
        let right = run(
            "r",
            &[("m", "2"), ("m", "1"), ("id", &id.replace('0', "1"))],
            Outcome::Ok,
        );
        let comparison = Comparison::new(left.clone(), right, &Ledger::default());
        assert!(!comparison.is_as_known());
        let again = Comparison::new(left.clone(), left, &Ledger::default());
        assert!(again.is_as_known());
    }

    #[test]
    fn a_side_without_a_recorder_is_one_difference() {
        let mut recorded = run(
            "l",
            &[("m", "1"), ("sent", "a"), ("sent", "b")],
            Outcome::Ok,
        );
        for observation in &mut recorded.cases[0].observations[1..] {
            observation.on_wire = true;
        }
        let bare = run("r", &[("m", "1")], Outcome::Ok);
        let comparison = Comparison::new(recorded.clone(), bare, &Ledger::default());
        let different = Vec::from_iter(comparison.new_differences());
        let [(_, difference)] = different.as_slice() else {
            panic!("{comparison}");
        };
        assert_eq!(difference.left.as_deref(), Some("recorded"));
        assert_eq!(difference.right, None);
        let again = Comparison::new(recorded.clone(), recorded, &Ledger::default());
        assert_eq!(again.cases[0].rows.len(), 4);
    }

    #[test]
    fn uncheckable_cases_are_compared_up_to_their_end() {
        let left = run("l", &[("m", "1"), ("m", "2")], Outcome::Ok);
        let stopped = |value| {
            let outcome = Outcome::Uncheckable("the record".to_owned());
            Comparison::new(
                left.clone(),
                run("r", &[("m", value)], outcome),
                &Ledger::default(),
            )
        };
        let comparison = stopped("1");
        assert!(comparison.is_as_known());
        let unchecked = ("r".to_owned(), "the record".to_owned());
        assert_eq!(comparison.cases[0].unchecked, [unchecked]);
        assert!(!stopped("2").is_as_known());
    }
}
