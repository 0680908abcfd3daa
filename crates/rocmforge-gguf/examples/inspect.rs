//! Shows what is in a GGUF file and how much memory the model needs.
//!
//! ```text
//! cargo run -p rocmforge-gguf --example inspect -- FILE [--ctx N] [--tensors]
//! ```
//!
//! `--ctx N` computes the KV cache for N tokens instead of the model's own context length; `--tensors` lists all
//! tensors. The exit code is 1 for a bad file and 2 for bad arguments.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use rocmforge_gguf::{Gguf, Metadata, Result, TensorType, Value};

const USAGE: &str = "usage: inspect FILE [--ctx N] [--tensors]";

/// Architectures whose files have a sliding window but not the layers that use it. In each group of so many layers all
/// but the last use it.
const WINDOW_PERIODS: &[(&str, u64)] = &[("gemma2", 2), ("gemma3", 6)];

/// The command line.
#[derive(Debug, Default, PartialEq)]
struct Args {
    path: String,
    context: Option<u64>,
    tensors: bool,
}

fn parse_args(args: impl IntoIterator<Item = String>) -> Option<Args> {
    let mut parsed = Args::default();
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--ctx" => parsed.context = Some(args.next()?.parse().ok().filter(|&tokens| tokens > 0)?),
            "--tensors" => parsed.tensors = true,
            _ if parsed.path.is_empty() && !arg.starts_with("--") => parsed.path = arg,
            _ => return None,
        }
    }
    (!parsed.path.is_empty()).then_some(parsed)
}

fn main() -> ExitCode {
    let mut stderr = std::io::stderr();
    let Some(args) = parse_args(std::env::args().skip(1)) else {
        let _ = writeln!(stderr, "{USAGE}");
        return ExitCode::from(2);
    };
    match Gguf::open(&args.path).and_then(|model| report(&model, &args)) {
        Ok(text) => {
            // A reader that has seen enough may close the pipe.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(stderr, "error: {}", printable(&error.to_string()));
            ExitCode::from(1)
        }
    }
}

/// The text with control characters escaped: what stands in a file must not steer a terminal.
fn printable(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_control() {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
    }
    out
}

/// A value on one line: long text and long arrays in short.
fn show(value: &Value) -> String {
    let text = match value {
        Value::Array(array) if array.len() <= 16 => {
            let text = format!("{array:?}");
            // Without the variant's name around the list.
            text.find('[')
                .map_or(text.clone(), |at| text[at..].trim_end_matches(')').to_string())
        }
        value => value.to_string(),
    };
    match text.char_indices().nth(80) {
        Some((at, _)) => format!("{}... ({} bytes)", printable(&text[..at]), text.len()),
        None => printable(&text),
    }
}

/// Bytes in the largest binary unit that leaves at least 1.
fn bytes(count: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| count >> shift > 0) {
        Some((shift, unit)) => format!("{:.2} {unit}", count as f64 / (1_u64 << shift) as f64),
        None => format!("{count} B"),
    }
}

/// A count in the largest decimal unit that leaves at least 1.
fn count(n: u64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")];
    match units.into_iter().find(|(unit, _)| n as f64 >= *unit) {
        Some((unit, name)) => format!("{:.2} {name}", n as f64 / unit),
        None => n.to_string(),
    }
}

/// Rows with aligned columns: the first to the left, the others to the right.
fn table(out: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in rows {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(out, "  {cell:<width$}"),
                _ => write!(out, "  {cell:>width$}"),
            };
        }
        out.push('\n');
    }
}

/// Names and values, both to the left.
fn list(out: &mut String, rows: &[(String, String)]) {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, value) in rows {
        let _ = writeln!(out, "  {name:<width$}  {value}");
    }
}

fn report(model: &Gguf, args: &Args) -> Result<String> {
    let metadata = model.metadata();
    let architecture = metadata.opt_string("general.architecture")?.unwrap_or_default();
    let elements: u64 = model.tensors().iter().map(|tensor| tensor.elements() as u64).sum();
    let weights: u64 = model.tensors().iter().map(|tensor| tensor.byte_len() as u64).sum();
    let mut out = String::new();

    let files = if model.parts() > 1 {
        format!(" in {} files", model.parts())
    } else {
        String::new()
    };
    let mut rows = vec![
        (
            "name".to_string(),
            metadata.get("general.name").map_or("-".to_string(), show),
        ),
        ("architecture".to_string(), printable(architecture)),
        ("parameters".to_string(), format!("{} ({elements})", count(elements))),
        (
            "size".to_string(),
            format!("{} ({} bytes){files}", bytes(model.file_len()), model.file_len()),
        ),
    ];
    if elements > 0 {
        rows.push((
            "bits per weight".to_string(),
            format!("{:.3}", 8.0 * weights as f64 / elements as f64),
        ));
    }
    rows.push((
        "format".to_string(),
        format!("version {}, alignment {}", model.version(), model.alignment()),
    ));
    list(&mut out, &rows);

    out.push_str("\ntensor types\n");
    table(&mut out, &type_rows(model));

    out.push_str("\nhyper-parameters\n");
    let prefix = format!("{architecture}.");
    let rows: Vec<(String, String)> = metadata
        .iter()
        .filter_map(|(key, value)| Some((printable(key.strip_prefix(&prefix)?), show(value))))
        .collect();
    list(&mut out, &rows);

    out.push_str("\ntokenizer\n");
    list(&mut out, &tokenizer_rows(metadata)?);

    out.push_str("\nmemory\n");
    memory(&mut out, metadata, architecture, weights, args.context)?;

    if args.tensors {
        out.push_str("\ntensors\n");
        let row = |tensor: &rocmforge_gguf::TensorInfo| {
            let dims: Vec<String> = tensor.dims.iter().map(usize::to_string).collect();
            vec![
                printable(&tensor.name),
                tensor.ty.to_string(),
                dims.join(" x "),
                bytes(tensor.byte_len() as u64),
            ]
        };
        table(&mut out, &model.tensors().iter().map(row).collect::<Vec<_>>());
    }
    Ok(out)
}

/// Type, number of tensors, parameters and bytes; the largest share first.
fn type_rows(model: &Gguf) -> Vec<Vec<String>> {
    let mut types: BTreeMap<TensorType, (usize, u64, u64)> = BTreeMap::new();
    for tensor in model.tensors() {
        let (tensors, elements, size) = types.entry(tensor.ty).or_default();
        *tensors += 1;
        *elements += tensor.elements() as u64;
        *size += tensor.byte_len() as u64;
    }
    let mut types: Vec<_> = types.into_iter().collect();
    types.sort_by_key(|(_, (.., size))| std::cmp::Reverse(*size));
    let head = ["type", "tensors", "parameters", "size"].map(String::from).to_vec();
    let row = |(ty, (tensors, elements, size)): (TensorType, (usize, u64, u64))| {
        vec![ty.to_string(), tensors.to_string(), count(elements), bytes(size)]
    };
    std::iter::once(head).chain(types.into_iter().map(row)).collect()
}

fn tokenizer_rows(metadata: &Metadata) -> Result<Vec<(String, String)>> {
    let text = |key: &str| metadata.get(key).map_or("-".to_string(), show);
    let tokens = metadata.opt_strings("tokenizer.ggml.tokens")?.unwrap_or_default();
    let mut rows = vec![
        ("model".to_string(), text("tokenizer.ggml.model")),
        ("pre".to_string(), text("tokenizer.ggml.pre")),
        ("tokens".to_string(), tokens.len().to_string()),
    ];
    for (key, value) in metadata.iter() {
        let name = key
            .strip_prefix("tokenizer.ggml.")
            .filter(|name| name.ends_with("_token_id"));
        let (Some(name), Some(id)) = (name, value.integer()) else {
            continue;
        };
        let token = usize::try_from(id).ok().and_then(|id| tokens.get(id));
        let token = token.map_or("not in the vocabulary".to_string(), |token| printable(token));
        rows.push((printable(name), format!("{id}  {token}")));
    }
    let is_template = |key: &str| key == "tokenizer.chat_template" || key.starts_with("tokenizer.chat_template.");
    let mut templates = metadata.iter().filter(|(key, _)| is_template(key)).peekable();
    if templates.peek().is_none() {
        rows.push(("chat_template".to_string(), "none".to_string()));
    }
    for (key, value) in templates {
        let size = match value {
            Value::String(text) => format!("present, {} bytes", text.len()),
            other => other.describe_type(),
        };
        rows.push((printable(key.trim_start_matches("tokenizer.")), size));
    }
    Ok(rows)
}

/// The KV cache's shape.
#[derive(Debug, PartialEq)]
struct Cache {
    /// Elements of K and V of one token, of each layer.
    widths: Vec<u64>,
    /// Whether each layer sees only the window.
    windowed: Vec<bool>,
    window: u64,
    /// The file has a window but neither it nor the table above says for which layers.
    unknown_layers: bool,
}

impl Cache {
    /// The shape by the metadata; `None` where they lack the layers or heads.
    fn of(metadata: &Metadata, architecture: &str) -> Result<Option<Cache>> {
        let key = |name: &str| format!("{architecture}.{name}");
        let layers = metadata.opt_usize(&key("block_count"))?;
        let heads = per_layer(metadata, &key("attention.head_count"), layers)?;
        // The widest model so far has 126 layers; a count without tensors behind it must not fill the memory.
        let (Some(layers), Some(heads)) = (layers.filter(|&layers| layers <= 4096), heads) else {
            return Ok(None);
        };
        let kv_heads = per_layer(metadata, &key("attention.head_count_kv"), Some(layers))?.unwrap_or(heads.clone());
        let embedding = metadata.opt_u64(&key("embedding_length"))?.unwrap_or(0);
        let most_heads = heads.iter().copied().max().unwrap_or(0);
        let default_width = embedding.checked_div(most_heads).unwrap_or(0);
        let key_width = metadata.opt_u64(&key("attention.key_length"))?.unwrap_or(default_width);
        let value_width = metadata
            .opt_u64(&key("attention.value_length"))?
            .unwrap_or(default_width);
        let widths = kv_heads
            .iter()
            .map(|n| n.saturating_mul(key_width.saturating_add(value_width)))
            .collect();

        let window = metadata.opt_u64(&key("attention.sliding_window"))?.unwrap_or(0);
        let pattern = metadata.get(&key("attention.sliding_window_pattern"));
        let period = match pattern {
            Some(value) => value.integer().and_then(|period| u64::try_from(period).ok()),
            None => WINDOW_PERIODS
                .iter()
                .find(|(name, _)| *name == architecture)
                .map(|(_, period)| *period),
        };
        let listed = metadata
            .opt_bools(&key("attention.sliding_window_pattern"))
            .unwrap_or_default();
        let windowed: Option<Vec<bool>> = match (listed, period) {
            (Some(listed), _) => Some(
                (0..layers)
                    .map(|layer| listed.get(layer).copied().unwrap_or(false))
                    .collect(),
            ),
            (None, Some(period)) if period > 0 => {
                Some((0..layers as u64).map(|layer| layer % period < period - 1).collect())
            }
            _ => None,
        };
        let unknown_layers = window > 0 && windowed.is_none();
        let windowed = windowed.filter(|_| window > 0).unwrap_or(vec![false; layers]);
        Ok(Some(Cache {
            widths,
            windowed,
            window,
            unknown_layers,
        }))
    }

    /// Bytes for `context` tokens with elements of so many bytes.
    fn bytes(&self, context: u64, element: u64) -> u64 {
        let layer = |(width, windowed): (&u64, &bool)| {
            let tokens = if *windowed { context.min(self.window) } else { context };
            width.saturating_mul(tokens).saturating_mul(element)
        };
        self.widths
            .iter()
            .zip(&self.windowed)
            .map(layer)
            .fold(0, u64::saturating_add)
    }
}

/// A number that stands once for all layers or once for each.
fn per_layer(metadata: &Metadata, key: &str, layers: Option<usize>) -> Result<Option<Vec<u64>>> {
    match (metadata.get(key), layers) {
        (Some(Value::Array(_)), _) => Ok(Some(metadata.u32s(key)?.iter().map(|&item| u64::from(item)).collect())),
        (Some(_), Some(layers)) if layers <= 4096 => Ok(Some(vec![metadata.u64(key)?; layers])),
        _ => Ok(None),
    }
}

fn memory(out: &mut String, metadata: &Metadata, architecture: &str, weights: u64, context: Option<u64>) -> Result<()> {
    let own = metadata.opt_u64(&format!("{architecture}.context_length"))?;
    let mut rows = vec![
        vec![
            "context length of the model".to_string(),
            own.map_or("-".to_string(), |own| own.to_string()),
        ],
        vec!["weights".to_string(), bytes(weights)],
    ];
    let cache = Cache::of(metadata, architecture)?;
    let (Some(cache), Some(context)) = (cache, context.or(own)) else {
        table(out, &rows);
        out.push_str("  The file does not say enough to compute the KV cache.\n");
        return Ok(());
    };
    for (name, element) in [("f16", 2), ("f32", 4)] {
        let size = cache.bytes(context, element);
        rows.push(vec![format!("KV cache, {context} tokens, {name}"), bytes(size)]);
        rows.push(vec![
            format!("weights and KV cache, {name}"),
            bytes(weights.saturating_add(size)),
        ]);
    }
    table(out, &rows);
    let windowed = cache.windowed.iter().filter(|windowed| **windowed).count();
    if windowed > 0 {
        let layers = cache.windowed.len();
        let _ = writeln!(
            out,
            "  {windowed} of {layers} layers keep at most the window of {} tokens.",
            cache.window
        );
    }
    if cache.unknown_layers {
        let window = cache.window;
        let _ = writeln!(
            out,
            "  There is a window of {window} tokens, but not for which layers: all are counted in full."
        );
    }
    out.push_str("  Scratch memory of the runtime is not included.\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocmforge_gguf::Writer;

    fn model(architecture: &str, numbers: &[(&str, u32)]) -> Writer<'static> {
        let mut writer = Writer::new();
        writer.metadata("general.architecture", architecture).unwrap();
        for (key, value) in numbers {
            writer.metadata(format!("{architecture}.{key}"), *value).unwrap();
        }
        writer
    }

    fn cache(writer: &Writer<'_>, architecture: &str) -> Cache {
        let model = Gguf::from_bytes(writer.to_bytes().unwrap()).unwrap();
        Cache::of(model.metadata(), architecture).unwrap().unwrap()
    }

    #[test]
    fn caches_of_known_models() {
        // SmolLM2-135M: 22.5 KiB a token in f16.
        let smol = [
            ("block_count", 30),
            ("embedding_length", 576),
            ("attention.head_count", 9),
            ("attention.head_count_kv", 3),
        ];
        assert_eq!(cache(&model("llama", &smol), "llama").bytes(1, 2), 23_040);
        // Gemma 3 270M: 18 KiB a token; after the window only 3 of 18 layers grow.
        let gemma = [
            ("block_count", 18),
            ("embedding_length", 640),
            ("attention.head_count", 4),
            ("attention.head_count_kv", 1),
            ("attention.key_length", 256),
            ("attention.value_length", 256),
            ("attention.sliding_window", 512),
        ];
        let gemma3 = cache(&model("gemma3", &gemma), "gemma3");
        assert_eq!((gemma3.bytes(1, 2), gemma3.bytes(512, 2)), (18_432, 512 * 18_432));
        assert_eq!(gemma3.bytes(1512, 4) - gemma3.bytes(512, 4), 1000 * 3 * 2048);
        // The same window in an architecture that the table lacks: an upper bound.
        let other = cache(&model("other", &gemma), "other");
        assert!(other.unknown_layers);
        assert_eq!(other.bytes(1512, 2), 1512 * 18_432);
    }

    #[test]
    fn layers_may_differ() {
        let mut writer = model(
            "a",
            &[
                ("block_count", 3),
                ("embedding_length", 64),
                ("attention.sliding_window", 10),
            ],
        );
        writer.metadata("a.attention.head_count", vec![4_u32, 8, 8]).unwrap();
        writer.metadata("a.attention.head_count_kv", vec![1_i32, 2, 0]).unwrap();
        writer
            .metadata("a.attention.sliding_window_pattern", vec![true, false, true])
            .unwrap();
        // Width 64 / 8; K and V of 1, 2 and 0 heads; the first layer keeps 10 tokens.
        let cache = cache(&writer, "a");
        assert_eq!(cache.widths, [16, 32, 0]);
        assert_eq!(cache.bytes(100, 2), 2 * (16 * 10 + 32 * 100));
    }

    #[test]
    fn hostile_numbers_do_not_overflow() {
        let huge = u32::MAX;
        let writer = model(
            "a",
            &[
                ("block_count", 4096),
                ("attention.head_count", huge),
                ("embedding_length", huge),
            ],
        );
        let cache = cache(&writer, "a");
        assert_eq!(cache.bytes(u64::MAX, 4), u64::MAX);
        let bytes = model(
            "a",
            &[
                ("block_count", huge),
                ("attention.head_count", 1),
                ("context_length", 7),
            ],
        )
        .to_bytes()
        .unwrap();
        let text = report(&Gguf::from_bytes(bytes).unwrap(), &Args::default()).unwrap();
        assert!(text.contains("does not say enough"), "{text}");
    }

    #[test]
    fn reports_name_what_is_there() {
        let mut writer = model(
            "llama",
            &[
                ("block_count", 1),
                ("attention.head_count", 2),
                ("embedding_length", 32),
                ("context_length", 64),
            ],
        );
        writer.metadata("general.name", "tiny\x1b[31m").unwrap();
        writer.metadata("tokenizer.ggml.model", "gpt2").unwrap();
        writer
            .metadata("tokenizer.ggml.tokens", vec!["<s>".to_string(), "b\n".to_string()])
            .unwrap();
        writer.metadata("tokenizer.ggml.bos_token_id", 0_u32).unwrap();
        writer.metadata("tokenizer.ggml.eos_token_id", 1_u32).unwrap();
        writer.metadata("tokenizer.ggml.padding_token_id", 2_u32).unwrap();
        writer.metadata("tokenizer.chat_template", "{{ x }}").unwrap();
        writer
            .tensor("token_embd.weight", &[32, 2], TensorType::Q8_0, vec![0; 68])
            .unwrap();
        let model = Gguf::from_bytes(writer.to_bytes().unwrap()).unwrap();
        let args = Args {
            tensors: true,
            ..Args::default()
        };
        let text = report(&model, &args).unwrap();
        for part in [
            "tiny\\u{1b}[31m",
            "64 (64)",
            "8.500",
            "q8_0        1          64  68 B",
            "attention.head_count  2",
            "bos_token_id      0  <s>",
            "eos_token_id      1  b\\n",
            "padding_token_id  2  not in the vocabulary",
            "chat_template     present, 7 bytes",
            "KV cache, 64 tokens, f16      8.00 KiB",
            "weights and KV cache, f32    16.07 KiB",
            "token_embd.weight  q8_0  32 x 2  68 B",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn arguments() {
        let parse = |text: &str| parse_args(text.split_whitespace().map(String::from));
        let expected = Args {
            path: "a".to_string(),
            context: Some(7),
            tensors: true,
        };
        assert_eq!(parse("--ctx 7 a --tensors"), Some(expected));
        for bad in ["", "--ctx a", "a b", "a --ctx", "a --ctx 0", "a --unknown"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
