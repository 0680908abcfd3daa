//! Lines of the user: from a line editor on a terminal, else as they come; and Ctrl-C.

use std::io::{BufRead, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use signal_hook::consts::SIGINT;

use crate::failure::Failure;

/// What the user wants.
pub(crate) enum Line {
    /// An answer to this.
    Text(String),
    /// A new conversation.
    Reset,
    /// The end.
    End,
}

/// Where lines come from.
pub(crate) struct Input {
    editor: Option<DefaultEditor>,
    /// Ctrl-C was pressed.
    interrupted: Arc<AtomicBool>,
    /// Ctrl-C ends the program: nothing is being computed.
    idle: Arc<AtomicBool>,
}

/// While an answer is made, Ctrl-C asks for its end and does nothing else.
pub(crate) struct StopAnswer<'a>(&'a Input);

impl Input {
    /// Takes over Ctrl-C.
    pub(crate) fn open() -> Result<Self, Failure> {
        let interrupted = Arc::new(AtomicBool::new(false));
        let idle = Arc::new(AtomicBool::new(true));
        signal_hook::flag::register_conditional_default(SIGINT, Arc::clone(&idle))?;
        signal_hook::flag::register(SIGINT, Arc::clone(&interrupted))?;
        let editor = if std::io::stdin().is_terminal() {
            Some(DefaultEditor::new()?)
        } else {
            None
        };
        Ok(Self {
            editor,
            interrupted,
            idle,
        })
    }

    /// The next line that is not empty.
    pub(crate) fn read(&mut self) -> Result<Line, Failure> {
        loop {
            let Some(line) = self.read_line()? else {
                return Ok(Line::End);
            };
            match line.trim() {
                "" => {}
                "/exit" => return Ok(Line::End),
                "/reset" => return Ok(Line::Reset),
                text => return Ok(Line::Text(text.to_owned())),
            }
        }
    }

    fn read_line(&mut self) -> Result<Option<String>, Failure> {
        let Some(editor) = &mut self.editor else {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_until(b'\n', &mut bytes)?;
            return Ok((read > 0).then(|| String::from_utf8_lossy(&bytes).into_owned()));
        };
        match editor.readline("> ") {
            Ok(line) => {
                editor.add_history_entry(&line)?;
                Ok(Some(line))
            }
            Err(ReadlineError::Interrupted) => {
                eprintln!("(Ctrl-D or /exit ends the program)");
                Ok(Some(String::new()))
            }
            Err(ReadlineError::Eof) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets Ctrl-C end the answer that begins now, until it is dropped.
    pub(crate) fn stop_answer(&self) -> StopAnswer<'_> {
        self.interrupted.store(false, Ordering::SeqCst);
        self.idle.store(false, Ordering::SeqCst);
        StopAnswer(self)
    }
}

impl StopAnswer<'_> {
    /// Whether Ctrl-C was pressed.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.interrupted.load(Ordering::SeqCst)
    }
}

impl Drop for StopAnswer<'_> {
    fn drop(&mut self) {
        self.0.idle.store(true, Ordering::SeqCst);
    }
}
