//! `azure-servicebus` for Python.

/// What this SDK alone has: it sends what it received, knows decimals and sessions with an empty id, lists sessions, and says
/// when its renewer of locks has failed.
macro_rules! every_case_of_python {
    ($sdk:expr) => {
        every_case!($sdk);
        test_of!(send_again: $sdk, SETTINGS, send { again, decimals });
        test_of!(session_without_name: $sdk, SESSIONS, sessions { empty_id });
        test_of!(session_lists: $sdk, SESSIONS, session_state { listed, listed_by_state });
        test_of!(session_renewer: $sdk, SESSIONS, session_locks { auto_renewal_fails });
        test_of!(observed: $sdk, OBSERVED, observed {
            headers, deletes, long_batch, dead_letters, dates, filter_counts, dead_letter_source, addresses,
            authorization_rules, claims, user_metadata, names_like_hosts, documents_of_errors, no_time_to_live,
        });
        test_of!(observed_otherwise: $sdk, OTHER_READINGS, observed {
            long_batch_refused, forwarded_to_disabled,
        });
        test_of!(observed_basic: $sdk, BASIC, observed { never_idle });
    };
}

/// The blocking clients.
mod blocking {
    every_case_of_python!(crate::driver::Sdk::PythonBlocking);
    over_every_transport!(crate::driver::Sdk::PythonBlocking, every_kind_of_link);
}

/// The clients of `azure.servicebus.aio`.
mod asynchronous {
    every_case_of_python!(crate::driver::Sdk::PythonAsynchronous);
    over_every_transport!(crate::driver::Sdk::PythonAsynchronous, every_kind_of_link);
}

/// The version before, whose completions have left when they return, and no more; it does not hear that a lock was lost.
mod before_7_15 {
    mod blocking {
        use crate::driver::Sdk::PythonBlocking714;

        every_kind_of_link_but_prefetching!(PythonBlocking714, SETTINGS);
        test_of!(locks: PythonBlocking714, SETTINGS, locks { not_overtaken });
        over_every_transport!(
            crate::driver::Sdk::PythonBlocking714,
            every_kind_of_link_but_prefetching
        );
    }

    mod asynchronous {
        use crate::driver::Sdk::PythonAsynchronous714;

        every_kind_of_link_but_prefetching!(PythonAsynchronous714, SETTINGS);
        test_of!(locks: PythonAsynchronous714, SETTINGS, locks { not_overtaken });
        over_every_transport!(
            crate::driver::Sdk::PythonAsynchronous714,
            every_kind_of_link_but_prefetching
        );
    }
}
