//! Which headers are application properties, and how both are turned into each other.

use std::collections::HashMap;

use axum::http::HeaderValue;
use axum::http::header::{self, HeaderMap, HeaderName};

use super::rejection::Rejection;
use super::value::{self, PropertyValue};

/// The header of the properties that Service Bus defines.
pub(crate) const BROKER_PROPERTIES: HeaderName = HeaderName::from_static("brokerproperties");
/// Headers that HTTP, its proxies, browsers and tracing have for themselves; the documentation leaves out "restricted"
/// ones without a list.
const RESTRICTED: [HeaderName; 48] = [
    header::ACCEPT,
    header::ACCEPT_CHARSET,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::ACCEPT_RANGES,
    header::AGE,
    header::ALLOW,
    header::AUTHORIZATION,
    header::CACHE_CONTROL,
    header::CONNECTION,
    header::CONTENT_DISPOSITION,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_LOCATION,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::COOKIE,
    header::DATE,
    header::DNT,
    header::ETAG,
    header::EXPECT,
    header::EXPIRES,
    header::FORWARDED,
    header::FROM,
    header::HOST,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::IF_UNMODIFIED_SINCE,
    header::LAST_MODIFIED,
    header::LOCATION,
    header::ORIGIN,
    header::PRAGMA,
    header::PROXY_AUTHORIZATION,
    header::RANGE,
    header::REFERER,
    header::SERVER,
    header::SET_COOKIE,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::USER_AGENT,
    header::VARY,
    header::VIA,
    BROKER_PROPERTIES,
];

/// More of those by how their names begin.
const RESTRICTED_FAMILIES: [&str; 8] = [
    "x-ms-",
    "x-forwarded-",
    "access-control-",
    "sec-",
    "servicebus",
    "traceparent",
    "tracestate",
    "keep-alive",
];

/// The headers of a request that are application properties, under their names as they were sent, where those are known.
/// Several headers of one name are one, with commas between.
pub(crate) fn application_properties(
    headers: &HeaderMap,
    names: &HashMap<String, String>,
) -> Result<Vec<(String, PropertyValue)>, Rejection> {
    let mut properties = Vec::new();
    for name in headers.keys().filter(|name| !is_restricted(name)) {
        let mut written = Vec::new();
        for value in headers.get_all(name) {
            written.push(std::str::from_utf8(value.as_bytes()).map_err(|_| {
                let text = format!("The value of the HTTP header '{name}' is not UTF-8.");
                Rejection::bad_request(text)
            })?);
        }
        let value = PropertyValue::of_header(&written.join(","));
        let sent = names.get(name.as_str());
        let name = sent.map_or_else(|| name.as_str().to_owned(), String::clone);
        properties.push((name, value));
    }
    Ok(properties)
}

/// Adds the header of an application property, if its name can be the name of one and its value has a form; says whether
/// that is so. Of several that differ only in the case of their names the last one is shown.
pub(crate) fn put_property(headers: &mut HeaderMap, name: &str, encoded: &[u8]) -> bool {
    let name = HeaderName::from_bytes(name.as_bytes());
    let Some(name) = name.ok().filter(|name| !is_restricted(name)) else {
        return false;
    };
    let value = value::header_of(encoded);
    let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) else {
        return false;
    };
    headers.insert(name, value);
    true
}

fn is_restricted(name: &HeaderName) -> bool {
    let begins = |family: &&str| name.as_str().starts_with(*family);
    RESTRICTED.contains(name) || RESTRICTED_FAMILIES.iter().any(begins)
}
