//! How a target gets its inputs: under `cargo test` those of the committed corpus and a fixed number of others, the same
//! in every run; under `cargo bolero` those that reach new code.

/// Runs a target of this name, over `count` inputs where nothing guides it.
#[macro_export]
macro_rules! target {
    ($name:ident, $count:expr) => {
        #[test]
        fn $name() {
            #[cfg(fuzzing)]
            bolero::check!().for_each(|input: &[u8]| servicebus_fuzz::$name::check(input));
            #[cfg(not(fuzzing))]
            servicebus_fuzz::run(stringify!($name), $count, servicebus_fuzz::$name::check);
        }
    };
}

#[cfg(not(fuzzing))]
mod plain {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::path::Path;

    use servicebus_broker::{IdSource as _, SplitMix64};

    /// Most bytes of an input.
    const LENGTH: u64 = 400;

    /// Runs `check` over the corpus of the target and over `count` inputs; one that fails is told in hexadecimal digits.
    pub fn run(target: &str, count: u64, check: fn(&[u8])) {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpus")
            .join(target);
        let files = std::fs::read_dir(corpus).into_iter().flatten().flatten();
        let mut files: Vec<_> = files.map(|file| file.path()).collect();
        files.sort();
        for file in files {
            let input = std::fs::read(&file).expect("a file of the corpus");
            attempt(&file.display().to_string(), &input, check);
        }
        let mut random = SplitMix64(0);
        for number in 0..count {
            let length = random.next() % (1 + random.next() % LENGTH);
            let input: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            attempt(&format!("input {number}"), &input, check);
        }
    }

    #[expect(
        clippy::print_stderr,
        reason = "the harness of tests shows it with the failure"
    )]
    fn attempt(name: &str, input: &[u8], check: fn(&[u8])) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(input))) {
            let digits: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
            eprintln!("{name} fails: {digits}");
            resume_unwind(panic);
        }
    }
}

#[cfg(not(fuzzing))]
pub use plain::run;
