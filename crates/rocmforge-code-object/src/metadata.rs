//! The metadata note: a MessagePack document.

use crate::error::limit;
use crate::{ArgKind, ArgMeta, KernelMeta, ParseError};
use rmpv::ValueRef;

/// The largest note we take. Each byte of it can become one value in memory, about 40 times as large.
const MAX_NOTE: usize = 8 << 20;
/// Deepest nesting. The format needs 6.
const MAX_DEPTH: usize = 16;
/// Most kernels of an object. The largest libraries have some ten thousand.
const MAX_KERNELS: usize = 1 << 17;
/// Most arguments of a kernel. A kernarg segment of a few KiB holds no more.
const MAX_ARGS: usize = 4096;
/// The longest name we copy.
const MAX_NAME: usize = 1 << 16;

pub(crate) struct Document {
    pub(crate) target: String,
    pub(crate) kernels: Vec<KernelMeta>,
}

pub(crate) fn parse(note: &[u8]) -> Result<Document, ParseError> {
    limit("metadata note in bytes", note.len(), MAX_NOTE)?;
    let mut rest = note;
    let root = rmpv::decode::read_value_ref_with_max_depth(&mut rest, MAX_DEPTH)
        .map_err(|e| ParseError::Metadata(format!("not MessagePack: {e}")))?;
    let root = Map::new(&root, "the document")?;
    let version = root.array("amdhsa.version")?;
    if version.first().and_then(ValueRef::as_u64) != Some(1) {
        return Err(ParseError::Metadata(format!(
            "amdhsa.version is {version:?}; its first number must be 1"
        )));
    }
    let kernels = root.array("amdhsa.kernels")?;
    limit("kernels", kernels.len(), MAX_KERNELS)?;
    Ok(Document {
        target: root.string("amdhsa.target")?.to_owned(),
        kernels: kernels.iter().map(kernel).collect::<Result<_, _>>()?,
    })
}

fn kernel(value: &ValueRef<'_>) -> Result<KernelMeta, ParseError> {
    let map = Map::new(value, "an entry of amdhsa.kernels")?;
    // A kernel without arguments has no .args.
    let args = map.optional_array(".args")?.unwrap_or_default();
    limit("arguments of a kernel", args.len(), MAX_ARGS)?;
    let required = match map.optional_array(".reqd_workgroup_size")? {
        None => None,
        Some([x, y, z]) => Some([number(x)?, number(y)?, number(z)?]),
        Some(other) => {
            return Err(ParseError::Metadata(format!(
                ".reqd_workgroup_size has {} entries, not 3",
                other.len()
            )));
        }
    };
    Ok(KernelMeta {
        name: map.string(".name")?.to_owned(),
        symbol: map.string(".symbol")?.to_owned(),
        kernarg_size: map.u32(".kernarg_segment_size")?,
        kernarg_align: map.u32(".kernarg_segment_align")?,
        args: args.iter().map(argument).collect::<Result<_, _>>()?,
        lds_size: map.u32(".group_segment_fixed_size")?,
        private_size: map.u32(".private_segment_fixed_size")?,
        vgpr_count: map.u32(".vgpr_count")?,
        agpr_count: map.optional_u32(".agpr_count")?,
        sgpr_count: map.u32(".sgpr_count")?,
        vgpr_spills: map.optional_u32(".vgpr_spill_count")?,
        sgpr_spills: map.optional_u32(".sgpr_spill_count")?,
        max_workgroup_size: map.u32(".max_flat_workgroup_size")?,
        wavefront_size: map.u32(".wavefront_size")?,
        uses_dynamic_stack: map.flag(".uses_dynamic_stack")?,
        required_workgroup_size: required,
        code: None,
    })
}

fn argument(value: &ValueRef<'_>) -> Result<ArgMeta, ParseError> {
    let map = Map::new(value, "an entry of .args")?;
    Ok(ArgMeta {
        offset: map.u32(".offset")?,
        size: map.u32(".size")?,
        kind: ArgKind::parse(map.string(".value_kind")?),
        name: map.optional_string(".name")?,
        type_name: map.optional_string(".type_name")?,
        address_space: map.optional_string(".address_space")?,
        is_const: map.flag(".is_const")?,
    })
}

fn number(value: &ValueRef<'_>) -> Result<u32, ParseError> {
    let number = value.as_u64().and_then(|n| u32::try_from(n).ok());
    number.ok_or_else(|| ParseError::Metadata("a number is missing, negative or over 32 bits".to_owned()))
}

/// A MessagePack map with text keys.
struct Map<'a>(&'a [(ValueRef<'a>, ValueRef<'a>)]);

impl<'a> Map<'a> {
    fn new(value: &'a ValueRef<'a>, what: &str) -> Result<Self, ParseError> {
        match value {
            ValueRef::Map(entries) => Ok(Self(entries)),
            _ => Err(ParseError::Metadata(format!("{what} is not a map"))),
        }
    }

    fn get(&self, key: &str) -> Option<&'a ValueRef<'a>> {
        let named = |k: &ValueRef<'_>| matches!(k, ValueRef::String(s) if s.as_str() == Some(key));
        self.0.iter().find(|(k, _)| named(k)).map(|(_, v)| v)
    }

    fn required<T>(key: &str, value: Option<T>) -> Result<T, ParseError> {
        value.ok_or_else(|| ParseError::Metadata(format!("{key} is missing")))
    }

    fn optional_array(&self, key: &str) -> Result<Option<&'a [ValueRef<'a>]>, ParseError> {
        match self.get(key) {
            None => Ok(None),
            Some(ValueRef::Array(values)) => Ok(Some(values)),
            Some(_) => Err(ParseError::Metadata(format!("{key} is not an array"))),
        }
    }

    fn array(&self, key: &str) -> Result<&'a [ValueRef<'a>], ParseError> {
        Self::required(key, self.optional_array(key)?)
    }

    fn optional_str(&self, key: &str) -> Result<Option<&'a str>, ParseError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let text = match value {
            ValueRef::String(text) => text.as_str(),
            _ => None,
        };
        let text = text.ok_or_else(|| ParseError::Metadata(format!("{key} is not text")))?;
        limit("length of a name", text.len(), MAX_NAME)?;
        Ok(Some(text))
    }

    fn optional_string(&self, key: &str) -> Result<Option<String>, ParseError> {
        Ok(self.optional_str(key)?.map(str::to_owned))
    }

    fn string(&self, key: &str) -> Result<&'a str, ParseError> {
        Self::required(key, self.optional_str(key)?)
    }

    fn u32(&self, key: &str) -> Result<u32, ParseError> {
        number(Self::required(key, self.get(key))?)
            .map_err(|_| ParseError::Metadata(format!("{key} is no 32-bit number")))
    }

    fn optional_u32(&self, key: &str) -> Result<u32, ParseError> {
        if self.get(key).is_none() { Ok(0) } else { self.u32(key) }
    }

    fn flag(&self, key: &str) -> Result<bool, ParseError> {
        match self.get(key) {
            None => Ok(false),
            Some(ValueRef::Boolean(flag)) => Ok(*flag),
            Some(_) => Err(ParseError::Metadata(format!("{key} is neither true nor false"))),
        }
    }
}
