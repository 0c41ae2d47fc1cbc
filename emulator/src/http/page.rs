//! The inspector's page, `/$emulator/`: static files, which ask the control API as any client of it.

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

/// Whether a browser asks for the page of the whole host, which SDKs and administration clients never do.
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

/// Sends a browser to the page.
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
    let known = headers.get(IF_NONE_MATCH);
    if known.is_some_and(|etag| etag == asset.etag) {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    // Every browser takes gzip; other clients have no use for the page.
    let content = [(CONTENT_TYPE, asset.media_type), (CONTENT_ENCODING, "gzip")];
    (common, content, asset.gzip).into_response()
}
