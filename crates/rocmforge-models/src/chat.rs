//! Chat templates: messages to the text that a model was trained on, by the Jinja template in its file.
//!
//! Templates come from files of others, so they run with limits: [`MAX_TEMPLATE_BYTES`], [`MAX_RENDERED_BYTES`] and a
//! bounded number of steps. What users write must not become control tokens: [`ChatTemplate::render_pieces`] and
//! [`Tokenizer::encode_pieces`](crate::tokenizer::Tokenizer::encode_pieces) see to that.
//!
//! ```
//! use rocmforge_models::chat::{ChatTemplate, Message, Role};
//!
//! let source = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
//!               {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
//! let template = ChatTemplate::new(source, None, Some("<|im_end|>"))?;
//! let text = template.render(&[Message::new(Role::User, "Hello")], true)?;
//! assert_eq!(text, "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n");
//! # Ok::<(), rocmforge_models::chat::ChatError>(())
//! ```

mod date;
mod json;
mod marks;
mod source;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;
use std::time::SystemTime;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error, ErrorKind, Value, context};
use rocmforge_gguf::{GgufError, Metadata};

use crate::files;
use crate::tokenizer::{Piece, Tokenizer};

/// The most bytes of a template's source. The longest in use has about 30,000.
pub const MAX_TEMPLATE_BYTES: usize = 1 << 20;

/// The most bytes of a rendered prompt.
pub const MAX_RENDERED_BYTES: usize = 1 << 26;

/// The most steps of the template engine in one rendering; each expression and each turn of a loop takes a few.
const FUEL: u64 = 20_000_000;

/// The template's name inside the engine. Without an extension nothing is escaped.
const NAME: &str = "chat";

/// Why a chat template cannot be read or rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// A metadata key has another type.
    #[error(transparent)]
    Metadata(#[from] GgufError),
    /// The template's source is too long.
    #[error("the chat template has {bytes} bytes, more than {limit}")]
    TemplateTooLong {
        /// Its length.
        bytes: usize,
        /// The most bytes allowed.
        limit: usize,
    },
    /// The source is no valid template.
    #[error("the chat template cannot be parsed: {0:#}")]
    Parse(#[source] Error),
    /// The template failed.
    #[error("the chat template failed: {0:#}")]
    Render(#[source] Error),
    /// The template refused the messages, with its own words.
    #[error("the chat template refuses the messages: {message}")]
    Refused {
        /// What the template says.
        message: String,
    },
    /// The template took more steps than a rendering may.
    #[error("the chat template did not end within {steps} steps")]
    TooManySteps {
        /// The most steps allowed.
        steps: u64,
    },
    /// The rendered text is too long.
    #[error("the rendered chat has more than {limit} bytes")]
    RenderedTooLong {
        /// The most bytes allowed.
        limit: usize,
    },
    /// A role that is not in [`Role::ALL`].
    #[error("the role {role:?} is not known; known: {known}")]
    UnknownRole {
        /// The role.
        role: String,
        /// The known roles.
        known: String,
    },
    /// The messages and the template hold all characters that could mark users' text.
    #[error("no private-use character is free to mark users' text")]
    NoFreeMark,
    /// A file of a Hugging Face directory cannot be used.
    #[error(transparent)]
    File(#[from] crate::FileError),
}

/// Role of a message's author. A closed list, because many templates put the role between the marks of a control token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Instructions for the whole conversation.
    System,
    /// As `System`, in newer models.
    Developer,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The answer of a tool.
    Tool,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 5] = [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool];

    /// The role as templates know it.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::Developer => "developer",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

impl FromStr for Role {
    type Err = ChatError;

    fn from_str(role: &str) -> Result<Self, ChatError> {
        Role::ALL
            .into_iter()
            .find(|known| known.as_str() == role)
            .ok_or_else(|| ChatError::UnknownRole {
                role: role.to_owned(),
                known: Role::ALL.map(Role::as_str).join(", "),
            })
    }
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Role of the author.
    pub role: Role,
    /// What they say.
    pub content: String,
}

impl Message {
    /// A message.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
        }
    }
}

/// A chat template.
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    bos: Option<String>,
    eos: Option<String>,
    variables: Vec<(String, serde_json::Value)>,
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
    /// A source that is too long or no valid template.
    pub fn new(source: &str, bos: Option<&str>, eos: Option<&str>) -> Result<Self, ChatError> {
        if source.len() > MAX_TEMPLATE_BYTES {
            return Err(ChatError::TemplateTooLong {
                bytes: source.len(),
                limit: MAX_TEMPLATE_BYTES,
            });
        }
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(ChatError::Parse)?);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", refuse);
        environment.add_filter("tojson", json::tojson);
        environment.add_filter("length", length);
        environment.add_filter("count", length);
        let parsed = source::without_generation_tags(source);
        environment.add_template_owned(NAME, parsed).map_err(ChatError::Parse)?;
        let template = Self {
            environment,
            source: source.to_owned(),
            bos: bos.map(str::to_owned),
            eos: eos.map(str::to_owned),
            variables: Vec::new(),
        };
        Ok(template.with_clock(SystemTime::now))
    }

    /// The template of a GGUF file; `None` where it has none.
    ///
    /// # Errors
    /// As [`ChatTemplate::new`].
    pub fn from_gguf(metadata: &Metadata) -> Result<Option<Self>, ChatError> {
        let Some(source) = metadata.opt_string("tokenizer.chat_template")? else {
            return Ok(None);
        };
        let tokens = metadata.opt_strings("tokenizer.ggml.tokens")?.unwrap_or_default();
        let token = |key: &str| -> Result<Option<&str>, ChatError> {
            let id = metadata.opt_u32(key)?;
            Ok(id.and_then(|id| tokens.get(id as usize)).map(String::as_str))
        };
        let (bos, eos) = (
            token("tokenizer.ggml.bos_token_id")?,
            token("tokenizer.ggml.eos_token_id")?,
        );
        Self::new(source, bos, eos).map(Some)
    }

    /// The template of a Hugging Face directory: `chat_template.jinja`, or else `chat_template` in
    /// `tokenizer_config.json`, which also names the tokens; `None` where it has none. Of several templates the one named
    /// `default` is taken.
    ///
    /// # Errors
    /// A file that cannot be read or parsed; as [`ChatTemplate::new`].
    pub fn from_directory(directory: &Path) -> Result<Option<Self>, ChatError> {
        let config: Option<serde_json::Value> = files::read_json_if_there(&directory.join("tokenizer_config.json"))?;
        let config = config.unwrap_or_default();
        let source = files::read_text_if_there(&directory.join("chat_template.jinja"))?
            .or_else(|| source::in_config(&config).map(str::to_owned));
        let token = |key: &str| config.get(key).and_then(source::token_text);
        source
            .map(|source| Self::new(&source, token("bos_token"), token("eos_token")))
            .transpose()
    }

    /// Gives the template a variable that it asks for, such as `enable_thinking`. Its content is trusted.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: serde_json::Value) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value));
        self
    }

    /// Sets the clock that templates read through `strftime_now`, in UTC. The default is the system's.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        let format = move |format: &str| date::format(clock(), format);
        self.environment.add_function("strftime_now", format);
        self
    }

    /// The template's source.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The text of the messages; with `add_generation_prompt` it ends where the model's answer begins.
    ///
    /// The text does not tell what users wrote: to tokenize it use [`ChatTemplate::render_pieces`].
    ///
    /// # Errors
    /// A template that fails, refuses the messages, takes too many steps or prints too much.
    pub fn render(&self, messages: &[Message], add_generation_prompt: bool) -> Result<String, ChatError> {
        let contents: Vec<&str> = messages.iter().map(|message| message.content.as_str()).collect();
        self.render_contents(messages, &contents, add_generation_prompt)
    }

    /// As [`ChatTemplate::render`], with what could make a control token out of the messages' contents in pieces that are
    /// not trusted. The pieces together are the text.
    ///
    /// Contents are rendered with private-use characters in place of those that begin or end one of `tokenizer`'s control
    /// tokens, and these are put back afterwards, as untrusted pieces. Where that changes what the template does (it may
    /// look into contents), only contents that hold a control token, or its beginning or end at their border, are treated
    /// so; a template that looks for that very token then does not find it.
    ///
    /// # Errors
    /// As [`ChatTemplate::render`].
    pub fn render_pieces(
        &self,
        messages: &[Message],
        add_generation_prompt: bool,
        tokenizer: &Tokenizer,
    ) -> Result<Vec<Piece>, ChatError> {
        let plain = self.render(messages, add_generation_prompt)?;
        let control: Vec<&str> = tokenizer.control_texts().collect();
        let contents: Vec<&str> = messages.iter().map(|message| message.content.as_str()).collect();
        let mut pieces = Vec::new();
        for extent in [marks::Extent::EveryBorder, marks::Extent::WholeTokens] {
            let marked = marks::mark(&contents, &control, extent, &[&self.source, &plain])?;
            if marked.is_unchanged() {
                return Ok(vec![Piece {
                    text: plain,
                    trusted: true,
                }]);
            }
            let contents: Vec<&str> = marked.contents().collect();
            let rendered = self.render_contents(messages, &contents, add_generation_prompt);
            // A template that looks into contents may also refuse the marks.
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

    fn render_contents(
        &self,
        messages: &[Message],
        contents: &[&str],
        add_generation_prompt: bool,
    ) -> Result<String, ChatError> {
        let messages = messages.iter().zip(contents);
        let messages: Vec<Value> = messages
            .map(|(message, content)| context! { role => message.role.as_str(), content => *content })
            .collect();
        let absent = |token: &Option<String>| token.as_deref().map_or(Value::UNDEFINED, Value::from);
        let mut variables: BTreeMap<&str, Value> = BTreeMap::from([
            ("messages", Value::from(messages)),
            ("add_generation_prompt", Value::from(add_generation_prompt)),
            ("bos_token", absent(&self.bos)),
            ("eos_token", absent(&self.eos)),
            ("tools", Value::from(())),
            ("documents", Value::from(())),
        ]);
        for (name, value) in &self.variables {
            variables.insert(name, Value::from(Serde(value)));
        }
        let template = self.environment.get_template(NAME).map_err(ChatError::Parse)?;
        let mut out = Limited {
            bytes: Vec::new(),
            overflow: false,
        };
        let rendered = template
            .render_captured_to(Value::from(variables), &mut out)
            .map(|_| ());
        if out.overflow {
            return Err(ChatError::RenderedTooLong {
                limit: MAX_RENDERED_BYTES,
            });
        }
        rendered.map_err(render_error)?;
        Ok(String::from_utf8_lossy(&out.bytes).into_owned())
    }
}

/// A writer that stops at [`MAX_RENDERED_BYTES`].
struct Limited {
    bytes: Vec<u8>,
    overflow: bool,
}

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > MAX_RENDERED_BYTES - self.bytes.len() {
            self.overflow = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What `raise_exception` carries through the engine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refusal(String);

fn refuse(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Refusal(message)))
}

fn render_error(error: Error) -> ChatError {
    if error.kind() == ErrorKind::OutOfFuel {
        return ChatError::TooManySteps { steps: FUEL };
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(current) = cause {
        if let Some(refusal) = current.downcast_ref::<Refusal>() {
            return ChatError::Refused {
                message: refusal.0.clone(),
            };
        }
        cause = current.source();
    }
    ChatError::Render(error)
}

/// Length of a value; of an undefined one it is 0, as in Python's Jinja.
fn length(value: &Value) -> Result<usize, Error> {
    if value.is_undefined() {
        return Ok(0);
    }
    let message = || format!("a value of type {} has no length", value.kind());
    value
        .len()
        .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, message()))
}
