//! The description of the control API (OpenAPI 3.1): `openapi.json`, as `build.rs` writes it.
//!
//! The program contains it compressed by gzip, and sends it so to clients that accept that. A build for embedders compresses
//! nothing.

use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};

/// Answers with the description.
#[cfg(not(feature = "cli"))]
pub(crate) async fn show(_: HeaderMap) -> Response {
    let description = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));
    ([(CONTENT_TYPE, "application/json")], description).into_response()
}

/// Answers with the description, compressed if the client accepts that.
#[cfg(feature = "cli")]
pub(crate) async fn show(headers: HeaderMap) -> Response {
    use axum::http::header::{CONTENT_ENCODING, VARY};

    let common = [
        (CONTENT_TYPE, "application/json"),
        (VARY, "accept-encoding"),
    ];
    match packed::is_taken(&headers) {
        true => (common, [(CONTENT_ENCODING, "gzip")], packed::DESCRIPTION).into_response(),
        false => (common, packed::unpack()).into_response(),
    }
}

#[cfg(feature = "cli")]
mod packed {
    use axum::http::HeaderMap;
    use axum::http::header::ACCEPT_ENCODING;

    /// Without a name or comment, as `build.rs` compresses it: ten bytes before the data and eight after them (RFC 1952
    /// §2.3).
    pub(super) const DESCRIPTION: &[u8] =
        include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json.gz"));
    const HEAD: usize = 10;
    const TAIL: usize = 8;

    /// Returns whether a client accepts gzip (RFC 9110 §12.5.3).
    pub(super) fn is_taken(headers: &HeaderMap) -> bool {
        let offers = headers.get_all(ACCEPT_ENCODING).iter();
        let offers = offers.filter_map(|offer| offer.to_str().ok());
        offers.flat_map(|offers| offers.split(',')).any(|offer| {
            let mut parts = offer.split(';').map(str::trim);
            let is_gzip = parts
                .next()
                .is_some_and(|it| it.eq_ignore_ascii_case("gzip"));
            is_gzip && !parts.any(|weight| weight.trim_end_matches(['0', '.']) == "q=")
        })
    }

    /// Returns the description as text.
    pub(super) fn unpack() -> Vec<u8> {
        let data = &DESCRIPTION[HEAD..DESCRIPTION.len() - TAIL];
        let unpacked = miniz_oxide::inflate::decompress_to_vec(data);
        unpacked.expect("the build packs the description")
    }
}
