//! `tokenizer_config.json`: the chat template and the special tokens.

use serde::Deserialize;
use serde_json::value::RawValue;

/// Special tokens that a configuration names, in the order of [`TokenizerConfig::tokens`].
const SPECIAL_TOKENS: usize = 7;

/// What is read of the file; what else it holds is passed over and takes no memory, and no value is made into a tree.
#[derive(Default, Deserialize)]
pub(crate) struct TokenizerConfig {
    chat_template: Option<Box<RawValue>>,
    bos_token: Option<Box<RawValue>>,
    eos_token: Option<Box<RawValue>>,
    unk_token: Option<Box<RawValue>>,
    sep_token: Option<Box<RawValue>>,
    pad_token: Option<Box<RawValue>>,
    cls_token: Option<Box<RawValue>>,
    mask_token: Option<Box<RawValue>>,
}

/// One of several templates.
#[derive(Deserialize)]
struct Named {
    name: String,
    template: String,
}

/// A special token with its properties.
#[derive(Deserialize)]
struct Token {
    content: String,
}

impl TokenizerConfig {
    /// The template: a text, or the one named `default` in a list.
    pub(crate) fn template(&self) -> serde_json::Result<Option<String>> {
        let Some(json) = self.chat_template.as_deref().map(RawValue::get) else {
            return Ok(None);
        };
        if json.starts_with('[') {
            let named: Vec<Named> = serde_json::from_str(json)?;
            let default = named.into_iter().find(|named| named.name == "default");
            return Ok(default.map(|named| named.template));
        }
        serde_json::from_str(json)
    }

    /// The texts of the special tokens bos, eos, unk, sep, pad, cls and mask: each a text, or an object that holds it.
    pub(crate) fn tokens(&self) -> [Option<String>; SPECIAL_TOKENS] {
        let tokens = [
            &self.bos_token,
            &self.eos_token,
            &self.unk_token,
            &self.sep_token,
            &self.pad_token,
            &self.cls_token,
            &self.mask_token,
        ];
        tokens.map(|token| {
            let json = token.as_deref()?.get();
            let text = serde_json::from_str(json);
            text.or_else(|_| serde_json::from_str(json).map(|token: Token| token.content))
                .ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> serde_json::Result<TokenizerConfig> {
        serde_json::from_str(text)
    }

    #[test]
    fn templates_and_tokens_have_two_forms_each() {
        let text = r#"{"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}, "unk_token": null, "other": [[[]]],
                       "chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d\u00e9"}]}"#;
        let config = parse(text).unwrap();
        assert_eq!(config.template().unwrap().as_deref(), Some("d\u{e9}"));
        let tokens = config.tokens();
        assert_eq!(tokens[..3], [Some("<s>".to_owned()), Some("</s>".to_owned()), None]);
        let config = parse(r#"{"chat_template": "x"}"#).unwrap();
        assert_eq!(config.template().unwrap().as_deref(), Some("x"));
        let config = parse(r#"{"chat_template": null}"#).unwrap();
        assert_eq!(config.template().unwrap(), None);
        assert!(parse(r#"{"chat_template": 5}"#).unwrap().template().is_err());
        assert!(parse(r#"{"chat_template": [{}]}"#).unwrap().template().is_err());
    }
}
