//! Interpreters of cases: a program that runs all cases of an SDK in one process, since to start one for each case costs
//! more than most cases do.
//!
//! It reads requests from standard input, a line of JSON each, `{"id": 1, "case": "send.single", "environment": {…}}`,
//! runs them side by side, and answers each by a line on standard output, `{"id": 1, "passed": true, "output": ""}`.
//! Its standard error is that of the tests. It ends with its standard input, which the system closes when the process
//! of the tests ends, however that comes about.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::thread;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::driver::Sdk;

/// The environment variables that a case has to itself.
pub(crate) type Environment = BTreeMap<&'static str, String>;

/// Those that this process has started. Each test has an asynchronous runtime of its own, which is why they belong to
/// none.
static RUNNING: LazyLock<Mutex<HashMap<Sdk, Arc<Interpreter>>>> = LazyLock::new(Mutex::default);

/// What an interpreter says of a case.
pub(crate) struct Answer {
    pub(crate) passed: bool,
    pub(crate) output: String,
}

/// A child process that runs cases.
struct Interpreter {
    requests: Mutex<ChildStdin>,
    waiting: Mutex<Waiting>,
}

/// The requests without an answer.
#[derive(Default)]
struct Waiting {
    last_id: u64,
    answers: HashMap<u64, oneshot::Sender<Answer>>,
    has_ended: bool,
}

/// Has an SDK's interpreter run a case. The first to ask starts it by `command`, and so does the next one after it has
/// ended before its time.
pub(crate) async fn run(
    sdk: Sdk,
    command: Command,
    case: &str,
    environment: &Environment,
) -> Answer {
    let answer = {
        let mut running = lock(&RUNNING);
        if running.get(&sdk).is_none_or(|it| it.has_ended()) {
            running.insert(sdk, Interpreter::start(command));
        }
        running[&sdk].ask(case, environment)
    };
    // `listen` drops those that are left when it ends.
    answer.await.unwrap_or_else(|_| Answer {
        passed: false,
        output: "the interpreter ended before it answered".to_owned(),
    })
}

impl Interpreter {
    fn start(mut command: Command) -> Arc<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the interpreter of a ready environment starts");
        let answers = child.stdout.take().expect("standard output is piped");
        let interpreter = Arc::new(Self {
            requests: Mutex::new(child.stdin.take().expect("standard input is piped")),
            waiting: Mutex::default(),
        });
        let listening = Arc::clone(&interpreter);
        thread::spawn(move || listening.listen(answers, child));
        interpreter
    }

    fn ask(&self, case: &str, environment: &Environment) -> oneshot::Receiver<Answer> {
        let (tell, answer) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        if waiting.has_ended {
            return answer;
        }
        waiting.last_id += 1;
        let id = waiting.last_id;
        waiting.answers.insert(id, tell);
        drop(waiting);
        let request = json!({"id": id, "case": case, "environment": environment});
        let mut requests = lock(&self.requests);
        // If it has ended, `listen` drops this request too.
        let _ = writeln!(requests, "{request}").and_then(|()| requests.flush());
        answer
    }

    /// Hands on what it answers, until it ends.
    fn listen(&self, answers: ChildStdout, mut child: Child) {
        for line in BufReader::new(answers).lines().map_while(Result::ok) {
            let Some((id, answer)) = parse(&line) else {
                // A standard error that is closed must not fail the run.
                let _ = writeln!(io::stderr(), "an interpreter says: {line}");
                continue;
            };
            if let Some(tell) = lock(&self.waiting).answers.remove(&id) {
                // The test may have given up.
                let _ = tell.send(answer);
            }
        }
        let mut waiting = lock(&self.waiting);
        waiting.has_ended = true;
        waiting.answers.clear();
        drop(waiting);
        let _ = child.wait();
    }

    fn has_ended(&self) -> bool {
        lock(&self.waiting).has_ended
    }
}

fn parse(line: &str) -> Option<(u64, Answer)> {
    let answer: Value = serde_json::from_str(line).ok()?;
    let passed = answer["passed"].as_bool()?;
    let output = answer["output"].as_str()?.to_owned();
    Some((answer["id"].as_u64()?, Answer { passed, output }))
}

/// A test that fails while it holds a lock leaves nothing half done behind it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
