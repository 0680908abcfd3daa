//! Timed program of a comparison, one of two: requests and answers over pipes; it ends at the latest with this process.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Making inputs of a few GiB is the longest that an answer takes.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, thiserror::Error)]
pub(crate) enum SideError {
    #[error("cannot start {name}: {source}")]
    Start { name: String, source: std::io::Error },
    #[error("{name} has ended without an answer to {request}; what it said is above")]
    Ended { name: String, request: String },
    #[error("{name} gave no answer within {} s to {request}", PATIENCE.as_secs())]
    Silent { name: String, request: String },
    #[error("{name} answered {answer:?}, which is no answer of the protocol")]
    Nonsense { name: String, answer: String },
    /// It cannot do what it was asked for; it can still do other things.
    #[error("{0}")]
    Refused(String),
}

pub(crate) struct Side {
    name: String,
    child: Child,
    requests: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Side {
    pub(crate) fn start(name: &str, command: &mut Command) -> Result<Self, SideError> {
        let failed = |source| SideError::Start {
            name: name.to_owned(),
            source,
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let requests = child.stdin.take();
        let output = child.stdout.take();
        let (says, answers) = channel();
        std::thread::spawn(move || {
            for line in output.map(BufReader::new).into_iter().flat_map(BufRead::lines) {
                let Ok(line) = line else { break };
                if says.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            name: name.to_owned(),
            child,
            requests,
            answers,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask(&mut self, request: &Value) -> Result<Value, SideError> {
        let (name, asked) = (self.name.clone(), request.to_string());
        // If it has ended, there will be no answer either.
        if let Some(pipe) = &mut self.requests {
            let _ = writeln!(pipe, "{request}").and_then(|()| pipe.flush());
        }
        let answer = match self.answers.recv_timeout(PATIENCE) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Disconnected) => return Err(SideError::Ended { name, request: asked }),
            Err(RecvTimeoutError::Timeout) => return Err(SideError::Silent { name, request: asked }),
        };
        let parsed: Option<Value> = serde_json::from_str(&answer).ok();
        match parsed.as_ref().map(|parsed| (parsed.get("ok"), parsed.get("error"))) {
            Some((Some(ok), _)) => Ok(ok.clone()),
            Some((None, Some(error))) => Err(SideError::Refused(
                error.as_str().unwrap_or("no reason given").to_owned(),
            )),
            _ => Err(SideError::Nonsense { name, answer }),
        }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // Without requests it ends by itself, and its lease is checked.
        drop(self.requests.take());
        for _ in 0..100 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        // It hangs, or was asked for too much; it has nothing to lose.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shell(script: &str) -> Side {
        Side::start("it", Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn an_answer_is_a_value_a_refusal_or_an_error() {
        let mut side = shell(
            "read a; echo '{\"ok\":{\"asked\":'$a'}}'; read a; echo '{\"error\":\"too large\"}'; read a; echo hello; read a; echo '{}'",
        );
        assert_eq!(side.ask(&json!({"n": 1})).unwrap(), json!({"asked": {"n": 1}}));
        assert_eq!(side.ask(&json!(2)).unwrap_err().to_string(), "too large");
        for answer in ["hello", "{}"] {
            let error = side.ask(&json!(3)).unwrap_err();
            assert!(
                matches!(&error, SideError::Nonsense { answer: said, .. } if said == answer),
                "{error}"
            );
        }
    }

    #[test]
    fn one_that_ends_is_noticed() {
        let error = shell("exit 3").ask(&json!({"do": "hello"})).unwrap_err();
        assert!(matches!(error, SideError::Ended { .. }), "{error}");
        let missing = Side::start("it", &mut Command::new("no-such-program-of-ours"));
        assert!(matches!(missing.err(), Some(SideError::Start { .. })));
    }
}
