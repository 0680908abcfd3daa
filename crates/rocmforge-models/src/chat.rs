//! Chat templates: messages to the text that a model was trained on, by the Jinja template in its file.
//!
//! Templates come from files of others, so they run with limits: [`MAX_TEMPLATE_BYTES`] of source, [`MAX_WORK`] and [`MAX_BYTES`] for a prompt,
//! and bounds on what is nested. What users write must not become control tokens: [`ChatTemplate::render_pieces`] and
//! [`Tokenizer::encode_pieces`](crate::tokenizer::Tokenizer::encode_pieces) see to that.
//!
//! ```
//! use rocmforge_models::chat::{ChatTemplate, Conversation, Message, Role};
//!
//! let source = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
//!               {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
//! let template = ChatTemplate::new(source, None, Some("<|im_end|>"))?;
//! let messages = [Message::new(Role::User, "Hello")];
//! let text = template.render(&Conversation::to_answer(&messages))?;
//! assert_eq!(text, "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n");
//! # Ok::<(), rocmforge_models::chat::ChatError>(())
//! ```

mod error;
mod marks;
mod message;
mod thinking;

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::time::SystemTime;

use rocmforge_gguf::Metadata;
use rocmforge_jinja::{Input, Template, strftime};

pub use error::{ChatError, TemplateError};
pub use message::{Content, Conversation, End, Message, Role, ToolCall};
pub use rocmforge_jinja::{MAX_BYTES, MAX_WORK};
pub use thinking::{Thinking, ThinkingMarks, ThinkingSplit};

use crate::files::{self, FileError};
use crate::tokenizer::{Piece, Tokenizer};
use crate::tokenizer_config::TokenizerConfig;

/// The most bytes of a template's source. The longest in use has about 30,000.
pub const MAX_TEMPLATE_BYTES: usize = 1 << 18;

/// What marks the end of a final message that is to be continued, as in transformers.
const CONTINUED: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// Special tokens that templates print, with the metadata key of their ids.
const SPECIAL_TOKENS: [(&str, &str); 7] = [
    ("bos_token", "tokenizer.ggml.bos_token_id"),
    ("eos_token", "tokenizer.ggml.eos_token_id"),
    ("unk_token", "tokenizer.ggml.unknown_token_id"),
    // GGUF spells it so.
    ("sep_token", "tokenizer.ggml.seperator_token_id"),
    ("pad_token", "tokenizer.ggml.padding_token_id"),
    ("cls_token", "tokenizer.ggml.cls_token_id"),
    ("mask_token", "tokenizer.ggml.mask_token_id"),
];

/// Variables of llama.cpp's templates with the date, and their forms. Some templates that ask for one show a day of 2024 if it is not given.
const DATES: [(&str, &str); 2] = [("date_string", "%d %b %Y"), ("datetime", "%b %d %Y")];

type Clock = Box<dyn Fn() -> SystemTime + Send + Sync>;

/// A chat template.
pub struct ChatTemplate {
    template: Template,
    source: String,
    clock: Clock,
    has_dates: bool,
    tokens: Vec<(&'static str, String)>,
    variables: Vec<(String, serde_json::Value)>,
}

/// What a rendering of a conversation is made of, texts of others among them.
struct Inputs<'a> {
    given: Vec<(&'a str, Input<'a>)>,
    end: End,
}

impl fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatTemplate")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

impl ChatTemplate {
    /// Parses a template. `bos` and `eos` are the texts that it prints as `bos_token` and `eos_token`.
    ///
    /// # Errors
    /// A source that is too long, nested too deeply or no valid template.
    pub fn new(source: &str, bos: Option<&str>, eos: Option<&str>) -> Result<Self, ChatError> {
        let tokens = [("bos_token", bos), ("eos_token", eos)];
        let tokens = tokens
            .into_iter()
            .filter_map(|(name, text)| Some((name, text?.to_owned())));
        Self::with_tokens(source, tokens.collect())
    }

    fn with_tokens(source: &str, tokens: Vec<(&'static str, String)>) -> Result<Self, ChatError> {
        if source.len() > MAX_TEMPLATE_BYTES {
            return Err(ChatError::TemplateTooLong {
                bytes: source.len(),
                limit: MAX_TEMPLATE_BYTES,
            });
        }
        let template = Template::parse(source).map_err(ChatError::Thread)?;
        Ok(Self {
            template: template.map_err(|error| ChatError::of_template(error, ChatError::Parse))?,
            source: source.to_owned(),
            clock: Box::new(SystemTime::now),
            has_dates: false,
            tokens,
            variables: Vec::new(),
        })
    }

    /// The template of a GGUF file; `None` where it has none.
    ///
    /// # Errors
    /// As [`ChatTemplate::new`].
    pub fn from_gguf(metadata: &Metadata) -> Result<Option<Self>, ChatError> {
        let Some(source) = metadata.opt_string("tokenizer.chat_template")? else {
            return Ok(None);
        };
        let texts = metadata.opt_strings("tokenizer.ggml.tokens")?.unwrap_or_default();
        let mut tokens = Vec::new();
        for (name, key) in SPECIAL_TOKENS {
            let id = metadata.opt_u32(key)?;
            if let Some(text) = id.and_then(|id| texts.get(id as usize)) {
                tokens.push((name, text.clone()));
            }
        }
        Self::with_tokens(source, tokens).map(Some)
    }

    /// The template of a Hugging Face directory: `chat_template.jinja`, or else `chat_template` in
    /// `tokenizer_config.json`, which also names the tokens; `None` where it has none. Of several templates the one named
    /// `default` is taken.
    ///
    /// # Errors
    /// A file that cannot be read or parsed; as [`ChatTemplate::new`].
    pub fn from_directory(directory: &Path) -> Result<Option<Self>, ChatError> {
        let path = directory.join("tokenizer_config.json");
        let config: TokenizerConfig = files::read_json_if_there(&path)?.unwrap_or_default();
        let source = match files::read_text_if_there(&directory.join("chat_template.jinja"))? {
            Some(source) => Some(source),
            None => config.template().map_err(FileError::json(&path))?,
        };
        let tokens = SPECIAL_TOKENS.iter().zip(config.tokens());
        let tokens = tokens.filter_map(|((name, _), text)| Some((*name, text?)));
        source
            .map(|source| Self::with_tokens(&source, tokens.collect()))
            .transpose()
    }

    /// Gives the template a variable that it asks for, such as `enable_thinking`. Its content is trusted. One of the same name in
    /// [`Conversation::variables`] takes its place.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: serde_json::Value) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value));
        self
    }

    /// Sets the clock that templates read through `strftime_now`, in UTC. The default is the system's.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Gives the template today's date in UTC, as `date_string` (01 Feb 2025) and `datetime` (Feb 01 2025), which llama.cpp does and transformers does
    /// not. One of the same name in [`Conversation::variables`] takes its place.
    #[must_use]
    pub const fn with_dates(mut self) -> Self {
        self.has_dates = true;
        self
    }

    /// The template's source.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The text of a conversation.
    ///
    /// The text does not tell what users wrote: to tokenize it use [`ChatTemplate::render_pieces`].
    ///
    /// # Errors
    /// A template that fails, refuses the messages, or exceeds a limit.
    pub fn render(&self, conversation: &Conversation<'_>) -> Result<String, ChatError> {
        self.render_inputs(&self.inputs(conversation)?, &[], &mut 0)
    }

    /// As [`ChatTemplate::render`], with what could make a control token out of texts of others in pieces that are not trusted: contents,
    /// reasoning, calls and results of tools, tools and documents. The pieces together are the text.
    ///
    /// These texts are rendered with private-use characters in place of those that begin or end one of `tokenizer`'s control
    /// tokens, and these are put back afterwards, as untrusted pieces. Where that changes what the template does (it may
    /// look into texts), only texts that hold a control token, or its beginning or end at their border, are treated
    /// so; a template that looks for that very token then does not find it. The renderings together have one limit of work.
    ///
    /// # Errors
    /// As [`ChatTemplate::render`].
    pub fn render_pieces(
        &self,
        conversation: &Conversation<'_>,
        tokenizer: &Tokenizer,
    ) -> Result<Vec<Piece>, ChatError> {
        let mut work = 0;
        let mut inputs = self.inputs(conversation)?;
        let plain = self.render_inputs(&inputs, &[], &mut work)?;
        let control: Vec<&str> = tokenizer.control_texts().collect();
        let mut originals: Vec<Cow<'_, str>> = Vec::new();
        inputs.for_each_text(&mut |text| originals.push(text.clone()));
        let texts: Vec<&str> = originals.iter().map(AsRef::as_ref).collect();
        let mut pieces = Vec::new();
        for extent in [marks::Extent::EveryBorder, marks::Extent::WholeTokens] {
            let marked = marks::mark(&texts, &control, extent, &[&self.source, &plain])?;
            if marked.is_unchanged() {
                return Ok(vec![Piece {
                    text: plain,
                    trusted: true,
                }]);
            }
            let mut contents = marked.contents();
            inputs.for_each_text(&mut |text| *text = Cow::Owned(contents.next().unwrap_or_default().to_owned()));
            let rendered = self.render_inputs(&inputs, &marked.marks(), &mut work);
            // A template that looks into texts may also refuse the marks.
            if extent == marks::Extent::EveryBorder && rendered.is_err() {
                continue;
            }
            pieces = marked.restore(&rendered?);
            if pieces.iter().map(|piece| piece.text.as_str()).collect::<String>() == plain {
                break;
            }
        }
        Ok(pieces)
    }

    /// What the template is given: special tokens, variables, and the conversation.
    fn inputs<'a>(&'a self, conversation: &Conversation<'a>) -> Result<Inputs<'a>, ChatError> {
        let failed = |error| ChatError::of_template(error, ChatError::Render);
        let mut given: Vec<(&str, Input<'_>)> = Vec::new();
        for (name, text) in &self.tokens {
            given.push((*name, Input::own(text)));
        }
        if self.has_dates {
            let now = (self.clock)();
            for (name, format) in DATES {
                // Both formats are known.
                let text = strftime(now, format).unwrap_or_default();
                given.push((name, Input::Own(text.into())));
            }
        }
        let own = self.variables.iter().map(|(name, value)| (name.as_str(), value));
        let further = conversation.variables.iter().map(|(name, value)| (*name, value));
        for (name, value) in own.chain(further) {
            let mut value = Input::of_json(value).map_err(failed)?;
            value.trust();
            given.push((name, value));
        }
        given.extend(conversation.inputs().map_err(failed)?);
        Ok(Inputs {
            given,
            end: conversation.end,
        })
    }

    /// The text of inputs with these marks; `work` is what was done for the prompt before, and then also for this text.
    fn render_inputs(&self, inputs: &Inputs<'_>, marks: &[char], work: &mut u64) -> Result<String, ChatError> {
        let continued;
        let given = match inputs.end {
            End::Content => {
                continued = inputs.with_end_of_content()?;
                &continued
            }
            End::Message | End::Answer => &inputs.given,
        };
        let rendered = self
            .template
            .render(given, &*self.clock, *work, marks)
            .map_err(ChatError::Thread)?;
        *work = rendered.used.work;
        let mut text = rendered
            .text
            .map_err(|error| ChatError::of_template(error, ChatError::Render))?;
        if inputs.end == End::Content {
            let at = text.rfind(CONTINUED.trim_end()).ok_or(ChatError::NoFinalMessage {
                reason: "the template does not show its content",
            })?;
            let keeps_space = text[at..].starts_with(CONTINUED);
            text.truncate(at);
            if !keeps_space {
                text.truncate(text.trim_end().len());
            }
        }
        Ok(text)
    }
}

impl<'a> Inputs<'a> {
    /// Every text of others.
    fn for_each_text(&mut self, visit: &mut dyn FnMut(&mut Cow<'a, str>)) {
        for (_, input) in &mut self.given {
            input.for_each_text(visit);
        }
    }

    /// The inputs with the content of the last message marked at its end.
    fn with_end_of_content(&self) -> Result<Vec<(&'a str, Input<'a>)>, ChatError> {
        let mut given = self.given.clone();
        let messages = given.iter_mut().find(|(name, _)| *name == "messages");
        let Some((_, Input::List(messages))) = messages else {
            return Ok(given);
        };
        let content = messages.last_mut().and_then(|message| message.entry("content"));
        let text = match content {
            Some(Input::List(parts)) => parts.iter_mut().rev().find_map(|part| part.entry("text")),
            other => other,
        };
        let Some(Input::Text(text)) = text else {
            return Err(ChatError::NoFinalMessage {
                reason: "it has no text",
            });
        };
        text.to_mut().push_str(CONTINUED);
        Ok(given)
    }
}
