use super::*;
use crate::failures::Failure;

#[tokio::test]
async fn a_long_poll_is_logged_unless_it_panicked() {
    let failures = Failures::default();
    let poll = async |panics: bool| {
        let task = async {
            if panics {
                failures.add_panic("a test", &"on purpose");
            }
            let (began, long) = (thread_time(), LONGEST + filling() * 2);
            while thread_time() - began < long {}
        };
        watched("a task", &failures, task).await;
        let failed = failures.all().into_iter();
        Vec::from_iter(failed.map(|Failure { reason, .. }| reason))
    };
    assert_eq!(poll(true).await, ["a test: panicked: on purpose"]);
    let failed = poll(false).await;
    assert_eq!(failed.len(), 2);
    assert!(failed[1].starts_with("a task took "), "{failed:?}");
}
