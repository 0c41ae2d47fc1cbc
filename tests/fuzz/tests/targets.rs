//! Every target, each with as many inputs as take a few seconds.

use servicebus_fuzz::target;

target!(admin, 40_000);
target!(amqp, 150_000);
target!(codec, 800_000);
target!(config, 30_000);
target!(emulator, 1_000);
target!(filter, 200_000);
target!(management, 100_000);
target!(message, 120_000);
target!(rest, 100_000);
target!(token, 100_000);

/// Or nothing of what they are altered to would be.
#[cfg(not(fuzzing))]
#[test]
fn seeds_of_descriptions_are_accepted() {
    let [entities, rules] = servicebus_fuzz::admin::accepted_seeds();
    assert!(
        entities > 5 && rules > 5,
        "{entities} entities, {rules} rules"
    );
}
