//! Conversation: its messages, which of them a prompt has, and files of it.

use std::io::{Read, Write};
use std::path::Path;

use rocmforge::gguf::open_regular;
use rocmforge::memory::Bytes;
use rocmforge::models::chat::{Content, Message, Role};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::store::new_file;

/// The longest file of a conversation that is read. As values of JSON it takes at most some 16 times as much memory.
const LONGEST: u64 = 16 << 20;

/// A conversation.
pub(super) struct Talk {
    /// All messages. The instructions are the first, if there are any.
    pub(super) messages: Vec<Message>,
    /// Messages after the instructions that prompts leave out.
    pub(super) left_out: usize,
}

impl Talk {
    /// A conversation that begins with these instructions.
    pub(super) fn new(system: Option<&str>) -> Self {
        let messages = system
            .map(|text| Message::new(Role::System, text))
            .into_iter()
            .collect();
        Self { messages, left_out: 0 }
    }

    /// The number of instructions: none or one.
    fn instructions(&self) -> usize {
        usize::from(self.messages.first().is_some_and(|first| first.role == Role::System))
    }

    /// The instructions.
    pub(super) fn system(&self) -> Option<&str> {
        match self
            .messages
            .first()
            .filter(|first| first.role == Role::System)
            .map(|first| &first.content)
        {
            Some(Content::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Replaces the instructions.
    pub(super) fn set_system(&mut self, text: Option<&str>) {
        self.messages.drain(..self.instructions());
        if let Some(text) = text {
            self.messages.insert(0, Message::new(Role::System, text));
        }
    }

    /// The messages of a prompt.
    pub(super) fn shown(&self) -> Vec<Message> {
        let (first, rest) = self.messages.split_at(self.instructions());
        [first, &rest[self.left_out.min(rest.len())..]].concat()
    }

    /// Where the turns after the oldest that is shown begin, each with a message of the user: what [`Self::left_out`] may become.
    pub(super) fn turns_after(&self) -> Vec<usize> {
        let rest = self.messages[self.instructions()..].iter().enumerate();
        let users = rest
            .skip(self.left_out + 1)
            .filter(|(_, message)| message.role == Role::User);
        users.map(|(index, _)| index).collect()
    }

    /// Writes the messages, as the chat API of OpenAI has them, in place of what the file had.
    pub(super) fn save(&self, path: &Path) -> Result<(), Failure> {
        let messages: Vec<Value> = (self.messages.iter())
            .map(|message| {
                let mut value = json!({ "role": message.role.as_str() });
                match &message.content {
                    Content::Absent => {}
                    Content::Text(text) => value["content"] = json!(text),
                    Content::Parts(parts) => value["content"] = json!(parts),
                }
                if let Some(reasoning) = &message.reasoning {
                    value["reasoning_content"] = json!(reasoning);
                }
                value
            })
            .collect();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut file = new_file(folder.unwrap_or(Path::new(".")))?;
        serde_json::to_writer_pretty(&mut file, &json!({ "messages": messages }))?;
        file.flush()?;
        file.persist(path)?;
        Ok(())
    }

    /// The conversation of a file: an object with messages, or a list of them.
    pub(super) fn load(path: &Path) -> Result<Self, Failure> {
        let (file, _) = open_regular(path)?;
        let mut bytes = Vec::new();
        file.take(LONGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LONGEST {
            return Err(format!(
                "it has more than {}, the longest conversation that is read",
                Bytes(LONGEST)
            )
            .into());
        }
        let value: Value = serde_json::from_slice(&bytes)?;
        let list = value.get("messages").unwrap_or(&value);
        let list = list.as_array().ok_or("it has no list of messages")?;
        let messages: Result<Vec<Message>, _> = list.iter().map(Message::from_json).collect();
        Ok(Self {
            messages: messages?,
            left_out: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(turns: usize, system: Option<&str>) -> Talk {
        let mut talk = Talk::new(system);
        for turn in 0..turns {
            talk.messages.push(Message::new(Role::User, format!("q{turn}")));
            talk.messages.push(Message::new(Role::Assistant, format!("a{turn}")));
        }
        talk
    }

    #[test]
    fn the_oldest_turns_are_left_out_and_the_instructions_stay() {
        for system in [None, Some("be brief")] {
            let mut talk = talk(2, system);
            talk.messages.push(Message::new(Role::User, "q2"));
            let whole = talk.messages.len();
            assert_eq!(talk.shown().len(), whole);
            let turns = talk.turns_after();
            assert_eq!(turns, [2, 4]);
            talk.left_out = turns[1];
            let shown = talk.shown();
            assert_eq!(shown.last(), talk.messages.last());
            assert_eq!(shown.len(), 1 + usize::from(system.is_some()));
            assert!(talk.turns_after().is_empty(), "the last message stays");
            assert_eq!(talk.messages.len(), whole, "nothing is forgotten");
        }
    }

    #[test]
    fn a_saved_conversation_is_loaded_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("talk.json");
        let mut saved = talk(2, Some("be brief"));
        saved.messages.last_mut().expect("there").reasoning = Some("hm".to_owned());
        for _ in 0..2 {
            saved.save(&path).expect("written");
        }
        assert_eq!(Talk::load(&path).expect("read").messages, saved.messages);
        saved.set_system(None);
        assert_eq!((saved.system(), saved.messages.len()), (None, 4));
        for damaged in ["", "{}", "[1]", r#"[{"role": "king"}]"#] {
            std::fs::write(&path, damaged).expect("written");
            assert!(Talk::load(&path).is_err(), "{damaged}");
        }
        let deep = format!(
            "[{{\"role\": \"user\", \"content\": {}{}}}]",
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        let long = format!(
            "[{{\"role\": \"user\", \"content\": \"{}\"}}]",
            "x".repeat(LONGEST as usize)
        );
        for (hostile, why) in [(deep, "recursion"), (long, "more than 16.0 MiB")] {
            std::fs::write(&path, hostile).expect("written");
            let error = Talk::load(&path).err().expect("refused").to_string();
            assert!(error.contains(why), "{error}");
        }
        // A folder, and a pipe that nobody writes to.
        let pipe = folder.path().join("pipe");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .is_ok_and(|status| status.success())
        );
        assert!(Talk::load(folder.path()).is_err() && Talk::load(&pipe).is_err());
    }
}
