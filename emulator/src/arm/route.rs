//! What a request is about, by its path.

use axum::http::Uri;
use axum::http::request::Parts;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A token by managed identity.
    Identity,
    /// Where a cloud has its endpoints.
    Metadata,
    /// Where a directory has its endpoints.
    OpenId,
    /// A token of a directory.
    Token,
}

/// Whether a request is for this API and not for the administration API, which has all other paths.
pub(crate) fn is_for(uri: &Uri) -> bool {
    directory(uri.path()).is_some()
}

impl Route {
    pub(crate) fn of(head: &Parts) -> Self {
        directory(head.uri.path()).unwrap_or(Self::Metadata)
    }
}

/// Of the paths of a directory and of its clients' environment.
fn directory(path: &str) -> Option<Route> {
    let path = path.to_ascii_lowercase();
    match path.as_str() {
        "/msi/token" => return Some(Route::Identity),
        "/metadata/endpoints" => return Some(Route::Metadata),
        _ => {}
    }
    let rest = path.strip_prefix("/adfs/")?;
    let is = |name: &str| {
        rest == name
            || rest
                .strip_suffix(name)
                .is_some_and(|own| own.ends_with('/'))
    };
    if is(".well-known/openid-configuration") {
        return Some(Route::OpenId);
    }
    (is("oauth2/v2.0/token") || is("oauth2/token")).then_some(Route::Token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_entities_are_not_taken() {
        for (path, expected) in [
            ("/msi/token", Some(Route::Identity)),
            ("/metadata/endpoints", Some(Route::Metadata)),
            (
                "/adfs/.well-known/openid-configuration",
                Some(Route::OpenId),
            ),
            (
                "/adfs/any/v2.0/.well-known/openid-configuration",
                Some(Route::OpenId),
            ),
            ("/adfs/oauth2/v2.0/token", Some(Route::Token)),
            ("/adfs/any/oauth2/v2.0/token", Some(Route::Token)),
            ("/msi", None),
            ("/adfs", None),
            ("/adfs/orders", None),
            ("/adfs/my-oauth2/token", None),
            ("/token", None),
        ] {
            assert_eq!(directory(path), expected, "{path}");
        }
    }
}
