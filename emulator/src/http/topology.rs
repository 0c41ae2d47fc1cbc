//! What a namespace holds now, in the format in which it can be declared.

use axum::Json;
use serde_json::Value;

use super::namespaces::Chosen;

pub(super) async fn show(Chosen(namespace): Chosen) -> Json<Value> {
    Json(namespace.topology())
}
