//! Lines of the user: from a line editor on a terminal, else as they come; and Ctrl-C.

use std::io::{BufRead, IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use signal_hook::consts::SIGINT;

use super::history::History;
use crate::failure::Failure;

/// What the user wants.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// An answer to this.
    Text(String),
    /// A new conversation.
    Reset,
    /// The list of commands.
    Help,
    /// Other instructions; none, if the text is empty.
    System(String),
    /// Another answer to the last message.
    Regenerate,
    /// The conversation in a file.
    Save(PathBuf),
    /// The conversation of a file in place of this one.
    Load(PathBuf),
    /// How quick the model is here.
    Bench,
    /// More than [`LONGEST_LINE`]; nothing of it is kept.
    TooLong,
    /// Something that cannot be done; the text says why.
    Unknown(String),
    /// The end.
    End,
}

/// The commands, for people.
pub(super) const HELP: &str = "\
/system TEXT  gives other instructions from the next answer on; without TEXT none
/regen        answers the last message anew
/reset        begins a new conversation
/save FILE    writes the conversation to a file, as JSON
/load FILE    goes on with the conversation of a file
/bench        measures prompt and decoding of this model
/exit         ends the program, as Ctrl-D does; Ctrl-C ends an answer";

/// Bytes of the longest line that is a message: more than any context has.
pub(super) const LONGEST_LINE: u64 = 4 << 20;

/// A line as it was read.
#[derive(Debug, PartialEq, Eq)]
enum RawLine {
    Text(String),
    TooLong,
    End,
}

/// Reads a line, and keeps no more of it than [`LONGEST_LINE`].
fn line_of(from: &mut impl BufRead) -> std::io::Result<RawLine> {
    let mut bytes = Vec::new();
    let read = from.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut bytes)?;
    if read == 0 {
        return Ok(RawLine::End);
    }
    if bytes.len() as u64 <= LONGEST_LINE || bytes.ends_with(b"\n") {
        return Ok(RawLine::Text(String::from_utf8_lossy(&bytes).into_owned()));
    }
    from.skip_until(b'\n')?;
    Ok(RawLine::TooLong)
}

/// What a line that is not empty means.
fn meaning(line: &str) -> Line {
    let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let is_command = command
        .strip_prefix('/')
        .is_some_and(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()));
    if !is_command {
        return Line::Text(line.to_owned());
    }
    let rest = rest.trim();
    let of_file = |line: fn(PathBuf) -> Line| match rest {
        "" => Line::Unknown(format!("{command} takes the name of a file")),
        file => line(file.into()),
    };
    match command {
        "/exit" => Line::End,
        "/reset" => Line::Reset,
        "/help" => Line::Help,
        "/system" => Line::System(rest.to_owned()),
        "/regen" => Line::Regenerate,
        "/save" => of_file(Line::Save),
        "/load" => of_file(Line::Load),
        "/bench" => Line::Bench,
        other => Line::Unknown(format!("there is no command {other}; /help lists them")),
    }
}

/// Where lines come from.
pub(crate) struct Input {
    editor: Option<DefaultEditor>,
    /// Lines of this and earlier runs.
    history: Option<History>,
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
        let (mut editor, mut history) = (None, None);
        if std::io::stdin().is_terminal() {
            let editor = editor.insert(DefaultEditor::new()?);
            history = History::of_user();
            for line in history
                .as_ref()
                .and_then(|history| history.lines().ok())
                .unwrap_or_default()
            {
                editor.add_history_entry(line)?;
            }
        }
        Ok(Self {
            editor,
            history,
            interrupted,
            idle,
        })
    }

    /// The next line that is not empty.
    pub(crate) fn read(&mut self) -> Result<Line, Failure> {
        loop {
            let line = match self.read_line()? {
                RawLine::Text(line) => line,
                RawLine::TooLong => return Ok(Line::TooLong),
                RawLine::End => return Ok(Line::End),
            };
            match line.trim() {
                "" => {}
                text => return Ok(meaning(text)),
            }
        }
    }

    fn read_line(&mut self) -> Result<RawLine, Failure> {
        let Some(editor) = &mut self.editor else {
            return Ok(line_of(&mut std::io::stdin().lock())?);
        };
        match editor.readline("> ") {
            Ok(line) if line.len() as u64 > LONGEST_LINE => Ok(RawLine::TooLong),
            Ok(line) => {
                editor.add_history_entry(&line)?;
                // A history that cannot be written is no reason to stop.
                if let Some(history) = self.history.as_ref().filter(|_| !line.trim().is_empty()) {
                    let _ = history.add(&line);
                }
                Ok(RawLine::Text(line))
            }
            Err(ReadlineError::Interrupted) => {
                eprintln!("(Ctrl-D or /exit ends the program)");
                Ok(RawLine::Text(String::new()))
            }
            Err(ReadlineError::Eof) => Ok(RawLine::End),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_is_read() {
        let long = LONGEST_LINE as usize;
        let text = [
            vec![b'x'; long + 1],
            b"\nhi\n".to_vec(),
            vec![b'y'; long],
            b"\nlast".to_vec(),
        ]
        .concat();
        let mut from = std::io::BufReader::with_capacity(1000, &text[..]);
        let mut read = || line_of(&mut from).expect("memory");
        assert_eq!(read(), RawLine::TooLong);
        assert_eq!(read(), RawLine::Text("hi\n".to_owned()));
        assert!(matches!(read(), RawLine::Text(line) if line.len() == long + 1));
        assert_eq!(read(), RawLine::Text("last".to_owned()));
        assert_eq!(read(), RawLine::End);
        // Without an end.
        let endless = std::io::repeat(b'x').take(8 * LONGEST_LINE);
        assert_eq!(
            line_of(&mut std::io::BufReader::new(endless)).expect("memory"),
            RawLine::TooLong
        );
    }

    #[test]
    fn a_word_after_a_slash_is_a_command_and_a_path_is_text() {
        assert_eq!(meaning("/system be brief"), Line::System("be brief".to_owned()));
        assert_eq!(meaning("/save  a b.json"), Line::Save("a b.json".into()));
        assert!(matches!(meaning("/save"), Line::Unknown(why) if why.contains("file")));
        assert!(matches!(meaning("/rest"), Line::Unknown(why) if why.contains("/help")));
        for text in ["/etc/passwd is what?", "/", "hi /reset", "/1 of 2"] {
            assert_eq!(meaning(text), Line::Text(text.to_owned()));
        }
    }
}
