//! Routes a request by its path.

use axum::http::Uri;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;

use super::identity::parameter;

/// The kind of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A token by managed identity.
    Identity,
    /// The endpoints of a cloud.
    Metadata,
    /// The endpoints of a directory.
    OpenId,
    /// A token of a directory.
    Token,
    /// A resource, or a list of them.
    Resource,
}

/// Returns whether a request is for this API and not for the administration API, which has all other paths.
pub(crate) fn is_for(uri: &Uri) -> bool {
    directory(uri.path()).is_some() || is_resource(uri)
}

impl Route {
    pub(crate) fn of(head: &Parts) -> Self {
        directory(head.uri.path()).unwrap_or(Self::Resource)
    }
}

/// Parses the paths of a directory and of its clients' environment.
fn directory(path: &str) -> Option<Route> {
    let path = path.to_ascii_lowercase();
    match path.as_str() {
        "/msi/token" => return Some(Route::Identity),
        "/metadata/endpoints" => return Some(Route::Metadata),
        _ => {}
    }
    let rest = path.strip_prefix("/adfs/")?;
    let is = |name: &str| {
        let own = rest.strip_suffix(name);
        own.is_some_and(|own| own.is_empty() || own.ends_with('/'))
    };
    if is(".well-known/openid-configuration") {
        return Some(Route::OpenId);
    }
    (is("oauth2/v2.0/token") || is("oauth2/token")).then_some(Route::Token)
}

/// Returns whether the path is that of a resource. An entity's name may begin like one: the version of the API decides, or
/// the part after the subscription.
fn is_resource(uri: &Uri) -> bool {
    let is_root = |root: &&str| {
        let path = uri.path().trim_start_matches('/');
        let first = path.split('/').next().unwrap_or_default();
        first.eq_ignore_ascii_case(root)
    };
    let Some(root) = ["subscriptions", "tenants", "providers"]
        .into_iter()
        .find(is_root)
    else {
        return false;
    };
    let version = || parameter(uri.query()?.as_bytes(), "api-version");
    let third = || segments(uri.path()).into_iter().nth(2).unwrap_or_default();
    let is_below =
        || ["resourcegroups", "providers"].contains(&third().to_ascii_lowercase().as_str());
    version().is_some_and(|version| is_version(&version)) || root == "subscriptions" && is_below()
}

/// Returns whether a version has the form of a date, with an optional suffix: those of the administration API have no day.
pub(crate) fn is_version(version: &str) -> bool {
    let (date, rest) = version.split_at_checked(10).unwrap_or_default();
    let is_digit = |(index, c): (usize, char)| match index {
        4 | 7 => c == '-',
        _ => c.is_ascii_digit(),
    };
    !date.is_empty()
        && date.chars().enumerate().all(is_digit)
        && (rest.is_empty() || rest.starts_with('-'))
}

/// Splits a path; clients write two slashes where a part has no name.
pub(crate) fn segments(path: &str) -> Vec<String> {
    let parts = path.split('/').filter(|part| !part.is_empty());
    let decoded = parts.map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned());
    decoded.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_entities_are_not_arm_paths() {
        for (path, expected) in [
            ("/msi/token", true),
            ("/metadata/endpoints", true),
            ("/adfs/.well-known/openid-configuration", true),
            ("/adfs/any/v2.0/.well-known/openid-configuration", true),
            ("/adfs/oauth2/v2.0/token", true),
            ("/adfs/any/oauth2/v2.0/token", true),
            ("/subscriptions?api-version=2022-12-01", true),
            ("/tenants?api-version=2022-12-01", true),
            (
                "/subscriptions/s/resourceGroups/g/providers/Microsoft.ServiceBus/namespaces/n",
                true,
            ),
            (
                "/subscriptions/s/resourcegroups/g?api-version=2021-05",
                true,
            ),
            ("/msi", false),
            ("/adfs", false),
            ("/adfs/orders", false),
            ("/adfs/my-oauth2/token", false),
            ("/token", false),
            ("/subscriptions?api-version=2021-05", false),
            ("/subscriptions/Subscriptions/s", false),
            ("/topic/subscriptions/resourcegroups", false),
            ("/orders?api-version=2022-12-01", false),
        ] {
            assert_eq!(is_for(&path.parse().unwrap()), expected, "{path}");
        }
    }

    #[test]
    fn an_api_version_is_a_full_date() {
        for (version, expected) in [
            ("2024-01-01", true),
            ("2022-10-01-preview", true),
            ("2021-05", false),
            ("2021-05-0x", false),
            ("latest", false),
            ("ééééé", false),
        ] {
            assert_eq!(is_version(version), expected, "{version}");
        }
    }
}
