//! What the control API says of itself.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

/// The description, as it stands beside the program (OpenAPI 3.1).
pub(super) const DESCRIPTION: &str = include_str!("../../openapi.json");

pub(super) async fn show() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], DESCRIPTION)
}
