//! The inspector page, `/$emulator/`: static files that use the control API like any client.

use axum::extract::Request;
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    ETAG, IF_NONE_MATCH, LOCATION,
};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use servicebus_inspector as inspector;

use super::error::no_such_route;

/// Where the page is.
pub(crate) const PATH: &str = "/$emulator/";

/// Returns whether a browser asks for the root page of the host, which SDKs and administration clients never do.
pub(crate) fn is_wanted(request: &Request) -> bool {
    let headers = request.headers();
    let accepted = headers
        .get(ACCEPT)
        .and_then(|accepted| accepted.to_str().ok());
    request.method() == Method::GET
        && request.uri().path() == "/"
        && !headers.contains_key(AUTHORIZATION)
        && accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

/// Redirects a browser to the page.
pub(crate) async fn redirect() -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, PATH)]).into_response()
}

/// Answers with a file of the page.
pub(crate) async fn show(uri: Uri, method: Method, headers: HeaderMap) -> Response {
    let path = uri.path().strip_prefix(PATH);
    let asset = path
        .filter(|_| method == Method::GET || method == Method::HEAD)
        .and_then(inspector::asset);
    let Some(asset) = asset else {
        return no_such_route(uri).await.into_response();
    };
    let common = [
        (CACHE_CONTROL, "no-cache"),
        (ETAG, asset.etag),
        (CONTENT_SECURITY_POLICY, inspector::CONTENT_SECURITY_POLICY),
    ];
    let content_type = [(CONTENT_TYPE, asset.media_type)];
    if let Some(content) = replaced(asset) {
        let [cache, _, policy] = common;
        return ([cache, policy], content_type, content).into_response();
    }
    let known = headers.get(IF_NONE_MATCH);
    if known.is_some_and(|etag| etag == asset.etag) {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    // Every browser accepts gzip; other clients do not need the page.
    let encoding = inspector::CONTENT_ENCODING.map(|encoding| [(CONTENT_ENCODING, encoding)]);
    let response = (common, content_type, asset.content).into_response();
    match encoding {
        Some(encoding) => (encoding, response).into_response(),
        None => response,
    }
}

/// Returns the file that replaces one of the program during work on the page: that of the same path in the directory of
/// `SERVICEBUS_EMULATOR_PAGE`.
#[cfg(debug_assertions)]
fn replaced(asset: &inspector::Asset) -> Option<Vec<u8>> {
    let directory = std::env::var_os("SERVICEBUS_EMULATOR_PAGE")?;
    std::fs::read(std::path::Path::new(&directory).join(asset.path)).ok()
}

#[cfg(not(debug_assertions))]
fn replaced(_: &inspector::Asset) -> Option<Vec<u8>> {
    None
}
