//! Links into the inspector, the page that shows the content of an emulator.

use percent_encoding::utf8_percent_encode;
use servicebus_assertions::Evidence;

use crate::stream::UNRESERVED;

/// The suffixes of dead-letter addresses, longest first, and their names on the page.
const SUB_QUEUES: [(&str, &str); 2] = [
    ("/$Transfer/$DeadLetterQueue", "/transfer-dead-letter"),
    ("/$DeadLetterQueue", "/dead-letter"),
];
/// Views whose paths an entity's could equal: the first letter of such an entity name is percent-encoded.
const VIEWS: [&str; 4] = ["record", "faults", "connections", "rules"];

/// Returns the link to the evidence of a failure, derived from the URL of the control API. It has no `$`, which shells would
/// expand.
pub(crate) fn link(control_url: &str, namespace: &str, evidence: Option<&Evidence>) -> String {
    let root = control_url.split("$emulator").next().unwrap_or_default();
    format!("{root}{}", fragment(namespace, evidence))
}

/// Returns the fragment (`#…`) that shows the evidence of a failure.
pub(crate) fn fragment(namespace: &str, evidence: Option<&Evidence>) -> String {
    let namespace = format!("#/{}", encoded(namespace));
    let Some(evidence) = evidence else {
        return namespace;
    };
    let entity = entity(&evidence.address);
    match (evidence.sequence_number, &evidence.message_id) {
        (Some(number), _) => format!("{namespace}/{entity}/messages/{number}"),
        (None, Some(id)) => format!("{namespace}/record?message_id={}", encoded(id)),
        (None, None) => format!("{namespace}/{entity}"),
    }
}

fn entity(address: &str) -> String {
    let mut sub_queues = SUB_QUEUES.iter();
    let found = sub_queues.find_map(|(end, name)| Some((address.strip_suffix(end)?, *name)));
    let (path, sub_queue) = found.unwrap_or((address, ""));
    let name = match path {
        view if VIEWS.contains(&view) => format!("%{:02x}{}", view.as_bytes()[0], &view[1..]),
        path => encoded(path),
    };
    name + sub_queue
}

/// Encodes the path of an entity for a path of the control API.
pub(crate) fn segments(path: &str) -> String {
    Vec::from_iter(path.split('/').map(encoded)).join("/")
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(address: &str, number: Option<i64>, id: Option<&str>) -> Evidence {
        Evidence {
            address: address.to_owned(),
            sequence_number: number,
            message_id: id.map(str::to_owned),
        }
    }

    #[test]
    fn a_link_shows_the_message_or_its_timeline() {
        let url = "http://127.0.0.9:5300/$emulator/v1";
        for (evidence, expected) in [
            (evidence("a/b", Some(3), Some("m")), "#/ns/a%2Fb/messages/3"),
            (
                evidence("q/$DeadLetterQueue", Some(3), None),
                "#/ns/q/dead-letter/messages/3",
            ),
            (
                evidence("q/$Transfer/$DeadLetterQueue", Some(3), None),
                "#/ns/q/transfer-dead-letter/messages/3",
            ),
            (
                evidence("q", None, Some("a b&c")),
                "#/ns/record?message_id=a%20b%26c",
            ),
            (evidence("rules", None, None), "#/ns/%72ules"),
        ] {
            let link = link(url, "ns", Some(&evidence));
            assert_eq!(link, format!("http://127.0.0.9:5300/{expected}"));
        }
        assert_eq!(link(url, "ns", None), "http://127.0.0.9:5300/#/ns");
    }
}
