//! Parses the path of a request in every spelling of the SDKs, and the query.
//!
//! Entity names may contain slashes, which some clients encode and others do not, so a path is decoded first and then
//! searched from the right for its keywords (admin-http.md §2).

use percent_encoding::percent_decode_str;
use servicebus_broker::SubQueue;

use super::refusal::ServiceError;
use crate::nodes::{Address, Destination};

const SUBSCRIPTIONS: &str = "subscriptions";
const RULES: &str = "rules";
const RESOURCES: &str = "$resources";
const NAMESPACE_INFO: &str = "$namespaceinfo";

/// A parsed path; names are as written, not looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/`
    Root,
    /// `/$namespaceinfo`
    NamespaceInfo,
    /// `/$Resources/queues`
    Queues,
    /// `/$Resources/topics`
    Topics,
    /// `/{path}`
    Entity(String),
    /// `/{topic}/Subscriptions`
    Subscriptions { topic: String },
    /// `/{topic}/Subscriptions/{name}`
    Subscription { topic: String, name: String },
    /// `/{topic}/Subscriptions/{subscription}/Rules`
    Rules { topic: String, name: String },
    /// `/{topic}/Subscriptions/{subscription}/Rules/{rule}`
    Rule {
        topic: String,
        name: String,
        rule: String,
    },
    /// A dead-letter queue, or another node below an entity.
    SubQueue { entity: String },
    /// An unknown path below `/$Resources/`.
    UnknownResource(String),
}

/// The known parameters of a query; all others are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query {
    /// The query as written, without the parameters of pages; empty if there was none.
    pub(crate) other_parameters: String,
    pub(crate) api_version: Option<String>,
    pub(crate) skip: Option<usize>,
    pub(crate) top: Option<usize>,
    pub(crate) filter: Option<String>,
}

/// Decodes the path of a request.
pub(crate) fn decoded(path: &str) -> Result<String, ServiceError> {
    let decoded = percent_decode_str(path).decode_utf8();
    let decoded = decoded.map_err(|_| {
        ServiceError::bad_request(format!(
            "The path '{path}' is not UTF-8 when it is decoded."
        ))
    })?;
    Ok(decoded.into_owned())
}

impl Route {
    /// Parses the path of a request that [`decoded`] returned, without slashes at its ends.
    pub(crate) fn of(path: &str) -> Self {
        let segments: Vec<&str> = path.split('/').collect();
        let is = |segment: &str, keyword: &str| segment.eq_ignore_ascii_case(keyword);
        match segments.as_slice() {
            [""] => return Self::Root,
            [only] if is(only, NAMESPACE_INFO) => return Self::NamespaceInfo,
            [first, rest @ ..] if is(first, RESOURCES) => return Self::resource(&rest.join("/")),
            _ => {}
        }
        let address = Address::parse(path);
        if address.destination != Destination::Store(SubQueue::Active) {
            let entity = address.entity;
            return Self::SubQueue { entity };
        }
        let topic = |segments: &[&str]| segments.join("/");
        match segments.as_slice() {
            [topic_ @ .., s, name, r, rule]
                if !topic_.is_empty() && is(s, SUBSCRIPTIONS) && is(r, RULES) =>
            {
                Self::Rule {
                    topic: topic(topic_),
                    name: (*name).into(),
                    rule: (*rule).into(),
                }
            }
            [topic_ @ .., s, name, r]
                if !topic_.is_empty() && is(s, SUBSCRIPTIONS) && is(r, RULES) =>
            {
                Self::Rules {
                    topic: topic(topic_),
                    name: (*name).into(),
                }
            }
            [topic_ @ .., s, name] if !topic_.is_empty() && is(s, SUBSCRIPTIONS) => {
                Self::Subscription {
                    topic: topic(topic_),
                    name: (*name).into(),
                }
            }
            [topic_ @ .., s] if !topic_.is_empty() && is(s, SUBSCRIPTIONS) => Self::Subscriptions {
                topic: topic(topic_),
            },
            _ => Self::Entity(path.into()),
        }
    }

    fn resource(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "queues" => Self::Queues,
            "topics" => Self::Topics,
            _ => Self::UnknownResource(name.into()),
        }
    }

    /// Returns whether the path is that of a subscription, a rule or a list of these, according to its keywords.
    pub(crate) fn has_keyword(&self) -> bool {
        matches!(
            self,
            Self::Subscriptions { .. }
                | Self::Subscription { .. }
                | Self::Rules { .. }
                | Self::Rule { .. }
        )
    }

    /// Returns the queue or topic of the request, whose own keys may authorize it; `None` for the namespace.
    pub(crate) fn owner(&self) -> Option<&str> {
        match self {
            Self::Root
            | Self::NamespaceInfo
            | Self::Queues
            | Self::Topics
            | Self::UnknownResource(_) => None,
            Self::Entity(entity) | Self::SubQueue { entity } => Some(entity),
            Self::Subscriptions { topic }
            | Self::Subscription { topic, .. }
            | Self::Rules { topic, .. }
            | Self::Rule { topic, .. } => Some(topic),
        }
    }
}

impl Query {
    /// Parses a query; Go sends a stray `&`, JavaScript an encoded `$`.
    pub(crate) fn parse(query: &str) -> Result<Self, ServiceError> {
        let mut read = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match decode(name).to_ascii_lowercase().as_str() {
                "$skip" => read.skip = Some(number("$skip", value)?),
                "$top" => read.top = Some(number("$top", value)?),
                "$filter" => read.filter = Some(decode(&value.replace('+', " "))),
                "api-version" => {
                    read.api_version = Some(decode(value));
                    read.keep_other(pair);
                }
                _ => read.keep_other(pair),
            }
        }
        Ok(read)
    }

    /// Returns whether the client uses this version or a later one; one without a version uses the first.
    pub(crate) fn is_at_least(&self, version: &str) -> bool {
        self.api_version
            .as_deref()
            .is_some_and(|own| own >= version)
    }

    fn keep_other(&mut self, pair: &str) {
        if !self.other_parameters.is_empty() {
            self.other_parameters.push('&');
        }
        self.other_parameters.push_str(pair);
    }
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn number(name: &str, value: &str) -> Result<usize, ServiceError> {
    let parsed = decode(value).trim().parse();
    parsed.map_err(|_| {
        let name = name.trim_start_matches('$');
        let text = format!("Parameter '{name}' should be non-negative integer.");
        ServiceError::parameter(text, name, value).without_sub_code()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_an_administration_path_is_parsed() {
        let subscription = |topic: &str, name: &str| Route::Subscription {
            topic: topic.into(),
            name: name.into(),
        };
        let rule = |rule: &str| Route::Rule {
            topic: "t".into(),
            name: "s".into(),
            rule: rule.into(),
        };
        let rules = Route::Rules {
            topic: "t".into(),
            name: "s".into(),
        };
        for (path, route) in [
            ("/", Route::Root),
            ("/$namespaceinfo", Route::NamespaceInfo),
            ("/%24NamespaceInfo", Route::NamespaceInfo),
            ("/$Resources/queues", Route::Queues),
            ("/$resources/Queues/", Route::Queues),
            ("/%24Resources/Topics", Route::Topics),
            (
                "/$Resources/relays",
                Route::UnknownResource("relays".into()),
            ),
            ("/q", Route::Entity("q".into())),
            ("/a/b/c", Route::Entity("a/b/c".into())),
            ("/a%2Fb%2fc/", Route::Entity("a/b/c".into())),
            (
                "/t/Subscriptions",
                Route::Subscriptions { topic: "t".into() },
            ),
            (
                "/a%2Ft/subscriptions/",
                Route::Subscriptions {
                    topic: "a/t".into(),
                },
            ),
            ("/t/SUBSCRIPTIONS/s", subscription("t", "s")),
            ("/a/t/Subscriptions/rules", subscription("a/t", "rules")),
            ("/t/Subscriptions/s/Rules", rules.clone()),
            ("/t/Subscriptions/s/rules/", rules),
            ("/t/subscriptions/s/rules/%24Default", rule("$Default")),
            ("/t%2FSubscriptions%2Fs%2FRules%2Fr", rule("r")),
            ("/subscriptions", Route::Entity("subscriptions".into())),
            ("/rules/r", Route::Entity("rules/r".into())),
            (
                "/q/$DeadLetterQueue",
                Route::SubQueue { entity: "q".into() },
            ),
            (
                "/t/Subscriptions/s/$deadletterqueue",
                Route::SubQueue {
                    entity: "t/Subscriptions/s".into(),
                },
            ),
            (
                "/q/%24Transfer/%24DeadLetterQueue",
                Route::SubQueue { entity: "q".into() },
            ),
        ] {
            let decoded = decoded(path).unwrap();
            assert_eq!(Route::of(decoded.trim_matches('/')), route, "{path}");
        }
        assert!(decoded("/%ff").is_err());
    }

    #[test]
    fn every_spelling_of_a_query_is_parsed() {
        let query = Query::parse(
            "?&$top=2&%24skip=1&timeout=60&API-Version=2021-05".trim_start_matches('?'),
        );
        let query = query.unwrap();
        assert_eq!((query.skip, query.top), (Some(1), Some(2)));
        assert_eq!(query.other_parameters, "timeout=60&API-Version=2021-05");
        assert!(
            query.is_at_least("2021-05")
                && query.is_at_least("2017-04")
                && !query.is_at_least("2024-05")
        );
        assert!(!Query::default().is_at_least("2021-05"));
        let filter = Query::parse("$filter=startswith(path,+%27a%27)+eq+true").unwrap();
        assert_eq!(
            filter.filter.as_deref(),
            Some("startswith(path, 'a') eq true")
        );
        for wrong in [
            "$skip=-1",
            "$top=x",
            "$skip=",
            "$top=99999999999999999999999",
        ] {
            assert!(Query::parse(wrong).is_err(), "{wrong}");
        }
    }
}
