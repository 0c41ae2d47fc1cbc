//! The list of cases, turned into one test per topic for each SDK, where the feature `matrices` is on.
//!
//! The scripts of every SDK have the same cases by the same names, so that this list is the only
//! one: a case without a script fails. A case is known by `topic.case`; what it is taken from, an
//! article of the service's documentation or a decision, stands at the head of the topic's script.

/// All cases of one SDK as tests. Expiry runs under both settings of D1, detaching under both of D2.
macro_rules! every_case {
    ($sdk:expr) => {
        test_of!(send: $sdk, SETTINGS, send {
            single, list_of_messages, batch, properties, without_id, body_kinds,
        });
        test_of!(receive: $sdk, SETTINGS, receive {
            peek_lock, receive_and_delete, several, stream, waiting, prefetch, closed, polling,
        });
        test_of!(settle: $sdk, SETTINGS, settle {
            completes, abandons, abandons_to_the_limit, dead_letters,
        });
        test_of!(locks: $sdk, SETTINGS, locks {
            renews, loses_lock, loses_lock_on_renewal, expires_to_the_limit,
        });
        test_of!(dead_letter: $sdk, SETTINGS, dead_letter { drains, drains_destructively });
        test_of!(peek: $sdk, SETTINGS, peek { states, from_sequence_number, empty });
        test_of!(not_found: $sdk, SETTINGS, not_found { sender, receiver, dead_letters, peek });
        test_of!(scheduling: $sdk, SETTINGS, scheduling {
            annotated, by_request, past, batch, cancelled, cancel_refused,
        });
        test_of!(deferral: $sdk, SETTINGS, deferral {
            by_number, receive_and_delete, stays_deferred, dead_lettered, of_dead_letters, not_found,
        });
        test_of!(duplicates: $sdk, SETTINGS, duplicates {
            dropped, window, scheduled, batch, without_id,
        });
        test_of!(forwarding: $sdk, SETTINGS, forwarding {
            chain, dead_letters, hops, target_deleted, target_disabled, target_full,
            not_received_from,
        });
        test_of!(status: $sdk, SETTINGS, status {
            disabled, send_disabled, receive_disabled, open_sender, open_receiver,
        });
        test_of!(limits: $sdk, SETTINGS, limits {
            too_large, full, full_of_dead_letters, batch_is_all_or_nothing, batch_fills_up,
        });
        test_of!(premium: $sdk, PREMIUM, premium { large_message, too_large, batch });
        test_of!(partitions: $sdk, SETTINGS, partitions { keys, numbers, batch_of_one_key });
        test_of!(idle: $sdk, SETTINGS, idle { deleted, used });
        test_of!(topics: $sdk, TOPICS, topics {
            fans_out, filtered, actions, settled, dead_letters, scheduled, expires,
            expires_by_default, evaluation_errors, forwards, duplicates, addresses,
            wrong_direction, not_found,
        });
        test_of!(sessions: $sdk, SESSIONS, sessions {
            by_id, empty, next_available, waits_for_next, times_out, taken, closed, side_by_side, streams,
            receive_and_delete, subscription, plain_receiver, on_plain_queue, long_id, disabled,
        });
        test_of!(session_messages: $sdk, SESSIONS, session_messages {
            in_order, deferred, deferred_alone, peeked, dead_lettered, abandons_to_the_limit,
            without_id, without_id_at_subscription, forwarded, scheduled, expires, replies,
        });
        test_of!(session_locks: $sdk, SESSIONS, session_locks {
            renews, loses_lock, loses_lock_on_renewal, passes_on, expires_to_the_limit, changed,
            auto_renewed,
        });
        test_of!(session_state: $sdk, SESSIONS, session_state {
            set_and_read, cleared, outlives, subscription, too_large,
        });
        test_of!(admin: $sdk, TOPICS, admin {
            namespace, queues, changes, topics, rules, pages, counts, missing, conflicts, refused,
            wrong_key, used_at_once,
        });
        test_of!(refusals: $sdk, SETTINGS, refusals { wrong_key, to_dead_letters, long_property });
        test_of!(scheduled_expiry_eager: $sdk, EAGER, scheduling { expires });
        test_of!(scheduled_expiry_on_receive: $sdk, ON_RECEIVE, scheduling { expires });
        test_of!(deferred_expiry_eager: $sdk, EAGER, deferral { expired });
        test_of!(deferred_expiry_on_receive: $sdk, ON_RECEIVE, deferral { expired });
        test_of!(status_keep: $sdk, KEEP, status { locked });
        test_of!(status_release: $sdk, RELEASE, status { locked });
        test_of!(expiry_eager: $sdk, EAGER, expiry {
            without_receiver, dropped, completed_under_lock, abandoned_after_expiry,
            lock_ends_after_expiry, by_default_time_to_live,
        });
        test_of!(expiry_on_receive: $sdk, ON_RECEIVE, expiry {
            without_receiver, dropped, completed_under_lock, abandoned_after_expiry,
            lock_ends_after_expiry, by_default_time_to_live,
        });
        test_of!(detach_keep: $sdk, KEEP, detach { closed, settled_by_token, dropped });
        test_of!(detach_release: $sdk, RELEASE, detach { closed, settled_by_token, dropped });
    };
}

/// Cases that between them use every kind of link, and are run by every transport.
macro_rules! every_kind_of_link {
    ($sdk:expr, $settings:ident) => {
        every_kind_of_link_but_prefetching!($sdk, $settings);
        test_of!(prefetch: $sdk, $settings, receive { prefetch });
    };
}

/// The same for a client that does not give back what it has prefetched when it is closed.
macro_rules! every_kind_of_link_but_prefetching {
    ($sdk:expr, $settings:ident) => {
        test_of!(send: $sdk, $settings, send { single, batch, properties });
        test_of!(receive: $sdk, $settings, receive { peek_lock, receive_and_delete });
        test_of!(settle: $sdk, $settings, settle { completes, dead_letters });
        test_of!(management: $sdk, $settings, peek { states });
        test_of!(scheduling: $sdk, $settings, scheduling { by_request });
        test_of!(deferral: $sdk, $settings, deferral { by_number });
        test_of!(limits: $sdk, $settings, limits { batch_fills_up });
        test_of!(refusals: $sdk, $settings, refusals { wrong_key });
    };
}

/// Cases over every transport but plain TCP, each in a module of its own; over TLS with those of a further script.
macro_rules! over_every_transport {
    ($sdk:expr, $cases:ident $(, $script:ident { $($case:ident),* })?) => {
        mod over_tls {
            $cases!($sdk, TLS);
            $(test_of!($script: $sdk, TLS, $script { $($case),* });)?
        }
        mod over_websocket {
            $cases!($sdk, WEBSOCKET);
        }
        mod over_websocket_and_tls {
            $cases!($sdk, SECURED_WEBSOCKET);
        }
    };
}

/// A test of the cases of one script: they spend their time waiting, and so run side by side.
macro_rules! test_of {
    ($test:ident: $sdk:expr, $settings:ident, $script:ident { $($case:ident),* $(,)? }) => {
        #[cfg(feature = "matrices")]
        #[tokio::test]
        async fn $test() {
            let cases = [$(concat!(stringify!($script), ".", stringify!($case))),*];
            $crate::driver::run_all($sdk, $crate::driver::$settings, &cases).await;
        }
    };
}
