//! The list of cases, turned into one test per case for each SDK.
//!
//! The scripts of every SDK have the same cases by the same names, so that this list is the only
//! one: a case without a script fails.

/// All cases of one SDK as tests. Expiry runs under both settings of D1, detaching under both of D2.
macro_rules! every_case {
    ($sdk:expr) => {
        tests_of!(send: $sdk, SETTINGS, send {
            single, list_of_messages, batch, properties, without_id, body_kinds,
        });
        tests_of!(receive: $sdk, SETTINGS, receive {
            peek_lock, receive_and_delete, several, stream, waiting, prefetch,
        });
        tests_of!(settle: $sdk, SETTINGS, settle {
            completes, abandons, abandons_to_the_limit, dead_letters, defers,
        });
        tests_of!(locks: $sdk, SETTINGS, locks {
            renews, loses_lock, loses_lock_on_renewal, expires_to_the_limit,
        });
        tests_of!(dead_letter: $sdk, SETTINGS, dead_letter { drains, drains_destructively });
        tests_of!(peek: $sdk, SETTINGS, peek { states, from_sequence_number, empty });
        tests_of!(not_found: $sdk, SETTINGS, not_found { sender, receiver, dead_letters, peek });
        tests_of!(expiry_eager: $sdk, EAGER, expiry {
            without_receiver, dropped, completed_under_lock, abandoned_after_expiry,
            lock_ends_after_expiry, by_default_time_to_live,
        });
        tests_of!(expiry_on_receive: $sdk, ON_RECEIVE, expiry {
            without_receiver, dropped, completed_under_lock, abandoned_after_expiry,
            lock_ends_after_expiry, by_default_time_to_live,
        });
        tests_of!(detach_keep: $sdk, KEEP, detach { closed, settled_by_token, dropped });
        tests_of!(detach_release: $sdk, RELEASE, detach { closed, settled_by_token, dropped });
    };
}

/// A module with one test per case.
macro_rules! tests_of {
    ($module:ident: $sdk:expr, $settings:ident, $script:ident { $($case:ident),* $(,)? }) => {
        mod $module {
            $(
                #[tokio::test]
                async fn $case() {
                    let case = concat!(stringify!($script), ".", stringify!($case));
                    $crate::driver::run($sdk, $crate::driver::$settings, case).await;
                }
            )*
        }
    };
}
