//! Assertions about how operations fail.

use servicebus_harness::{Action, prelude::*};

/// The sentence by which an operation fails.
pub(crate) async fn error_of<T: std::fmt::Debug>(action: Action<'_, T>) -> String {
    action.result().await.unwrap_err().to_string()
}

/// Asserts the kind and the sentence of the error by which an operation fails.
pub(crate) async fn assert_error<T: std::fmt::Debug>(
    action: Action<'_, T>,
    kind: ErrorKind,
    sentence: &str,
) {
    let error = action.result().await.unwrap_err();
    assert_eq!((error.kind(), &*error.to_string()), (kind, sentence));
}

/// Asserts that a text has this part, and shows it otherwise.
#[track_caller]
pub(crate) fn assert_contains(text: &(impl std::fmt::Display + ?Sized), part: &str) {
    let text = text.to_string();
    assert!(text.contains(part), "{text}");
}
