//! Template sources: where configurations keep them, and tags that only training needs.

use serde_json::Value;

/// Tags that mark the model's own words for training. Each is replaced by one that changes nothing and keeps the white
/// space around it as it is.
const TAGS: [(&str, &str); 2] = [("generation", "if true"), ("endgeneration", "endif")];

/// The source without `{% generation %}` and `{% endgeneration %}`.
pub(super) fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at + 2);
        out.push_str(before);
        rest = tag;
        let body = tag.trim_start_matches(['-', '+']);
        let (word, after) = match body.trim_start().split_once(|c: char| !c.is_ascii_alphabetic()) {
            Some((word, _)) => (word, &body.trim_start()[word.len()..]),
            None => continue,
        };
        let ends = after.trim_start().trim_start_matches(['-', '+']).starts_with("%}");
        if let Some((_, replacement)) = TAGS.iter().find(|(tag, _)| *tag == word && ends) {
            out.push_str(&tag[..tag.len() - body.len()]);
            out.push(' ');
            out.push_str(replacement);
            out.push(' ');
            rest = after.trim_start();
        }
    }
    out.push_str(rest);
    out
}

/// The template of a `tokenizer_config.json`: a string, or a list of named ones.
pub(super) fn in_config(config: &Value) -> Option<&str> {
    match config.get("chat_template")? {
        Value::String(source) => Some(source),
        Value::Array(named) => {
            let default = named
                .iter()
                .find(|entry| entry.get("name").and_then(Value::as_str) == Some("default"));
            default?.get("template")?.as_str()
        }
        _ => None,
    }
}

/// A special token of a configuration: its text, or an object that holds it.
pub(super) fn token_text(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("content")?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generation_tags_become_tags_without_effect() {
        let source = "a {%- generation -%} b {% endgeneration%}{% if generation %}{% generations %}{%";
        let expected = "a {%- if true -%} b {% endif %}{% if generation %}{% generations %}{%";
        assert_eq!(without_generation_tags(source), expected);
    }
}
