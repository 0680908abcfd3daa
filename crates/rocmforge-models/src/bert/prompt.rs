//! Prompt of a reranker that is a decoder: a text with the places of the query and of the document.

use std::path::Path;

use rocmforge_gguf::Gguf;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::chat::{ChatTemplate, Conversation, End, MAX_TEMPLATE_BYTES, Message, Role};
use crate::text::shortened;
use crate::tokenizer::Piece;
use crate::{ModelError, files};

/// The template of a GGUF.
const KEY: &str = "tokenizer.chat_template.rerank";
/// What stands for the query and the document, in the template of a GGUF and in what a chat template is given.
const PLACES: [&str; 2] = ["{query}", "{document}"];
const MARKS: [&str; 2] = ["\u{f0000}", "\u{f0001}"];
const RULE: &str = "it must have the query and the document, each once";
/// The most bytes of a file of settings.
const LONGEST: u64 = 1 << 20;

/// A prompt's parts, which are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prompt {
    before: String,
    between: String,
    after: String,
    /// The document comes before the query.
    swapped: bool,
}

/// What sentence-transformers states for all models of a directory.
#[derive(Default, Deserialize)]
struct Sentences {
    #[serde(default)]
    prompts: Map<String, Value>,
    default_prompt_name: Option<String>,
}

/// The settings of its first module.
#[derive(Default, Deserialize)]
struct Transformer {
    #[serde(default)]
    processing_kwargs: Map<String, Value>,
}

impl Prompt {
    /// The template that a GGUF has for pairs; `None` where it has none.
    ///
    /// # Errors
    /// It is too long, or lacks a place.
    pub(super) fn of_gguf(gguf: &Gguf) -> Result<Option<Self>, ModelError> {
        let Some(source) = gguf.metadata().opt_string(KEY)? else {
            return Ok(None);
        };
        let found = Self::split(source, PLACES).filter(|_| source.len() <= MAX_TEMPLATE_BYTES);
        found.map(Some).ok_or_else(|| ModelError::Hyperparameter {
            key: KEY.to_owned(),
            value: shortened(source),
            rule: RULE.to_owned(),
        })
    }

    /// What the chat template of a directory makes of messages with the roles `query` and `document`, as sentence-transformers gives it a pair. The prompt
    /// that is applied by default is a message before them.
    ///
    /// # Errors
    /// There is no chat template, it fails, or it does not show both texts once.
    pub(super) fn of_directory(directory: &Path) -> Result<Self, ModelError> {
        let path = directory.join("chat_template.jinja");
        let refused = |value: String| ModelError::Unsupported {
            path: path.clone(),
            field: "chat_template",
            value,
            supported: "a template that shows one message of the role query and one of the role document".to_owned(),
        };
        let Some(template) = ChatTemplate::from_directory(directory)? else {
            return Err(refused("none".to_owned()));
        };
        let stated = directory.join("config_sentence_transformers.json");
        let stated: Sentences = files::read_json_if_there_within(&stated, LONGEST)?.unwrap_or_default();
        let own = directory.join("sentence_bert_config.json");
        let own: Transformer = files::read_json_if_there_within(&own, LONGEST)?.unwrap_or_default();
        let default = stated
            .default_prompt_name
            .and_then(|name| stated.prompts.get(&name).cloned());
        let default = default.and_then(|prompt| prompt.as_str().map(str::to_owned));
        let system = default.filter(|prompt| !prompt.is_empty());
        let system = system.map(|prompt| Message::new(Role::System, prompt));
        let pair = [Role::Query, Role::Document].into_iter().zip(MARKS);
        let pair = pair.map(|(role, mark)| Message::new(role, mark));
        let messages: Vec<Message> = system.into_iter().chain(pair).collect();
        let variables = own.processing_kwargs.get("chat_template").and_then(Value::as_object);
        let variables: Vec<(&str, Value)> = variables
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str(), value.clone()))
            .collect();
        let answers = variables
            .iter()
            .any(|(name, value)| *name == "add_generation_prompt" && *value == Value::Bool(true));
        let conversation = Conversation {
            variables: &variables,
            end: if answers { End::Answer } else { End::Message },
            ..Conversation::new(&messages)
        };
        let text = template.render(&conversation)?;
        Self::split(&text, MARKS).ok_or_else(|| refused(shortened(&text)))
    }

    /// A text with two places, each once.
    fn split(text: &str, places: [&str; 2]) -> Option<Self> {
        let [query, document] = places.map(|place| text.find(place).filter(|_| text.matches(place).count() == 1));
        let (query, document) = (query?, document?);
        let swapped = document < query;
        let order = if swapped { [1, 0] } else { [0, 1] };
        let [first, second] = order.map(|place| {
            let start = [query, document][place];
            start..start + places[place].len()
        });
        Some(Self {
            before: text[..first.start].to_owned(),
            between: text[first.end..second.start].to_owned(),
            after: text[second.end..].to_owned(),
            swapped,
        })
    }

    /// The prompt of a pair. What stands in its texts is no control token.
    pub(super) fn pieces(&self, query: &str, document: &str) -> [Piece; 5] {
        let (first, second) = if self.swapped {
            (document, query)
        } else {
            (query, document)
        };
        let piece = |text: &str, trusted| Piece {
            text: text.to_owned(),
            trusted,
        };
        [
            piece(&self.before, true),
            piece(first, false),
            piece(&self.between, true),
            piece(second, false),
            piece(&self.after, true),
        ]
    }
}
