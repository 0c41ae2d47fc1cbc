//! What a test has left behind, written as a failure.

use super::Report;
use crate::mailbox::Mailbox;

/// Describes the messages of these mailboxes, which nobody has taken.
pub(crate) async fn left_behind(mailboxes: &[Mailbox]) -> String {
    let mut parts = Vec::new();
    for mailbox in mailboxes {
        let found = match mailbox.try_counts().await {
            Ok(counts) => counts.to_string(),
            Err(error) => error.to_string(),
        };
        let expected = format!("expected nothing to be left when the test ended, found {found}");
        let report = Report::of(mailbox).await;
        parts.push(report.plain_failure(&expected).to_string());
    }
    parts.join("\n\n")
}
