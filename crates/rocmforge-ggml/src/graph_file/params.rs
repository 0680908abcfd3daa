//! Parameters of ops as JSON objects: what a node's `op` and `params` say, in both directions.
//!
//! Names are those of [`Op`]'s fields; `function` is the member of a family that a fused op has. An f32 is a JSON number, which keeps
//! every bit of a finite one; the others are the texts `inf`, `-inf` and `nan:` with the 32 bits in hexadecimal.

use serde_json::{Map, Value, json};

use crate::{
    Attention, AttentionMask, DType, DiagFill, FlashAttnExt, GluKind, MAX_DIMS, Op, PagedAttention, Rope, RopeScaling,
    RopeStyle, SoftMax, SortOrder, Unary,
};

/// What is wrong with a node's op or one of its parameters.
#[derive(Debug)]
pub(super) enum Fault {
    /// No op of ours has this name.
    Op,
    /// A parameter is missing, superfluous or of another kind.
    Parameter { name: String, rule: &'static str },
}

/// The parameters of an op; `None` if it has none.
pub(super) fn of(op: &Op) -> Option<Map<String, Value>> {
    let value = match *op {
        Op::Accumulate { offset } => json!({ "offset": offset }),
        Op::Scale { factor } => json!({ "factor": float(factor) }),
        Op::ScaleBias { factor, bias } => json!({ "factor": float(factor), "bias": float(bias) }),
        Op::Clamp { min, max } => json!({ "min": float(min), "max": float(max) }),
        Op::Softcap { cap } => json!({ "cap": float(cap) }),
        Op::Glu { swapped, .. } => json!({ "swapped": swapped }),
        Op::MulMatUnary(kind) => json!({ "function": kind.name() }),
        Op::MulMatGlu(kind) => json!({ "function": kind.name() }),
        Op::MulMatMany { biases } => json!({ "biases": biases }),
        Op::LayerNorm { eps } | Op::RmsNorm { eps } | Op::AddRmsNorm { eps } | Op::L2Norm { eps } => {
            json!({ "eps": float(eps) })
        }
        Op::SoftMax(s) => json!({
            "scale": float(s.scale), "max_bias": float(s.max_bias), "mask": s.mask, "sinks": s.sinks,
        }),
        Op::DiagMask { n_past, .. } => json!({ "n_past": n_past }),
        Op::Rope(rope) | Op::RopeSetRows(rope) => rope_value(rope),
        Op::FlashAttnExt(a) => json!({
            "scale": float(a.scale), "max_bias": float(a.max_bias), "softcap": float(a.softcap), "mask": a.mask,
            "sinks": a.sinks,
        }),
        Op::Attention(a) => json!({
            "heads": a.heads, "kv_heads": a.kv_heads, "head_dim": a.head_dim, "scale": float(a.scale),
            "causal": a.causal, "mask": a.mask == AttentionMask::Additive,
        }),
        Op::PagedAttention(a) => json!({
            "heads": a.heads, "kv_heads": a.kv_heads, "head_dim": a.head_dim, "scale": float(a.scale),
            "block_size": a.block_size, "window": a.window, "softcap": a.softcap.map(float),
        }),
        Op::Cpy { to } => json!({ "to": to.map(|to| to.to_string()) }),
        Op::Concat { axis } => json!({ "axis": axis }),
        Op::Pad { left, right } => json!({ "left": left, "right": right }),
        Op::Permute { axes } => json!({ "axes": axes }),
        Op::Argsort { order } => json!({ "descending": order == SortOrder::Descending }),
        Op::TopK { k } => json!({ "k": k }),
        // The name says all.
        Op::GetRows
        | Op::SetRows
        | Op::MulMat
        | Op::MulMatId
        | Op::Add
        | Op::Sub
        | Op::Mul
        | Op::Div
        | Op::AddId
        | Op::Sqr
        | Op::Sqrt
        | Op::Log
        | Op::Sin
        | Op::Cos
        | Op::Unary(_)
        | Op::SsmConv
        | Op::SsmScan
        | Op::GatedDeltaNet
        | Op::Dup
        | Op::Cont
        | Op::Repeat
        | Op::Reshape
        | Op::View
        | Op::Transpose
        | Op::Argmax
        | Op::Sum
        | Op::SumRows
        | Op::Mean
        | Op::Cumsum
        | Op::MeanPool => return None,
    };
    match value {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

fn rope_value(rope: Rope) -> Value {
    let mode = match rope.style {
        RopeStyle::Interleaved => "normal",
        RopeStyle::HalfSplit => "neox",
        RopeStyle::Mrope(_) => "mrope",
        RopeStyle::Imrope(_) => "imrope",
        RopeStyle::Vision(_) => "vision",
    };
    let mut value = json!({
        "n_dims": rope.n_dims, "theta": float(rope.theta), "mode": mode,
        "max_position": rope.max_position, "magnitude": float(rope.magnitude),
    });
    if let Some(sections) = rope.style.sections() {
        value["sections"] = json!(sections);
    }
    match rope.scaling {
        RopeScaling::None => value["scaling"] = json!("none"),
        RopeScaling::Linear { factor } => {
            value["scaling"] = json!("linear");
            value["factor"] = float(factor);
        }
        RopeScaling::Yarn {
            factor,
            original_context,
            beta_fast,
            beta_slow,
            ext_factor,
        } => {
            value["scaling"] = json!("yarn");
            value["factor"] = float(factor);
            value["original_context"] = json!(original_context);
            value["beta_fast"] = float(beta_fast);
            value["beta_slow"] = float(beta_slow);
            value["ext_factor"] = float(ext_factor);
        }
    }
    value
}

fn float(x: f32) -> Value {
    if x.is_finite() {
        json!(f64::from(x))
    } else if x.is_nan() {
        json!(format!("nan:{:08x}", x.to_bits()))
    } else {
        json!(if x > 0.0 { "inf" } else { "-inf" })
    }
}

fn as_float(value: &Value) -> Option<f32> {
    match value {
        Value::Number(number) => {
            // Rounding takes away what reading the decimal number may have added beyond 24 bits.
            let x = number.as_f64()? as f32;
            x.is_finite().then_some(x)
        }
        Value::String(text) => match text.as_str() {
            "inf" => Some(f32::INFINITY),
            "-inf" => Some(f32::NEG_INFINITY),
            text => {
                let bits = u32::from_str_radix(text.strip_prefix("nan:")?, 16).ok()?;
                Some(f32::from_bits(bits)).filter(|x| x.is_nan())
            }
        },
        _ => None,
    }
}

/// A type by its name.
pub(super) fn dtype(name: &str) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| dtype.to_string() == name)
}

/// The op of a name and its parameters.
///
/// # Errors
/// The name is no op's, or the parameters are not exactly its own.
pub(super) fn op(name: &str, params: Option<&Map<String, Value>>) -> Result<Op, Fault> {
    let mut reader = Reader { params, read: 0 };
    let op = reader.op(name)?;
    let Some(params) = params.filter(|params| params.len() != reader.read) else {
        return Ok(op);
    };
    // Each is read once, so one of them is not the op's.
    let own = of(&op).unwrap_or_default();
    let other = params.keys().find(|key| !own.contains_key(*key));
    Err(Fault::Parameter {
        name: other.cloned().unwrap_or_default(),
        rule: "the op has no such parameter",
    })
}

/// The parameters of one node.
struct Reader<'a> {
    params: Option<&'a Map<String, Value>>,
    /// How many have been read.
    read: usize,
}

impl Reader<'_> {
    fn get<T>(&mut self, name: &str, rule: &'static str, read: impl Fn(&Value) -> Option<T>) -> Result<T, Fault> {
        let value = self.params.and_then(|params| params.get(name));
        self.read += usize::from(value.is_some());
        value.and_then(read).ok_or_else(|| Fault::Parameter {
            name: name.to_owned(),
            rule,
        })
    }

    fn float(&mut self, name: &str) -> Result<f32, Fault> {
        self.get(
            name,
            "it must be a number of 32 bits, or `inf`, `-inf`, `nan:` and its bits",
            as_float,
        )
    }

    fn count(&mut self, name: &str) -> Result<usize, Fault> {
        self.get(name, "it must be a whole number that is not negative", as_count)
    }

    fn flag(&mut self, name: &str) -> Result<bool, Fault> {
        self.get(name, "it must be true or false", Value::as_bool)
    }

    fn optional<T>(&mut self, name: &str, read: impl Fn(&Value) -> Option<T>) -> Result<Option<T>, Fault> {
        self.get(name, "it must be null or a value of its kind", |value| match value {
            Value::Null => Some(None),
            value => read(value).map(Some),
        })
    }

    fn counts(&mut self, name: &str) -> Result<[usize; MAX_DIMS], Fault> {
        self.get(name, "it must be four whole numbers", |value| {
            let all: Option<Vec<usize>> = value.as_array()?.iter().map(as_count).collect();
            all?.try_into().ok()
        })
    }

    fn op(&mut self, name: &str) -> Result<Op, Fault> {
        Ok(match name {
            "GET_ROWS" => Op::GetRows,
            "SET_ROWS" => Op::SetRows,
            "MUL_MAT" => Op::MulMat,
            "MUL_MAT_ID" => Op::MulMatId,
            "MUL_MAT_UNARY" => Op::MulMatUnary(self.get("function", "it must be the name of a unary op", as_unary)?),
            "MUL_MAT_GLU" => {
                Op::MulMatGlu(self.get("function", "it must be the name of a gated linear unit", as_glu)?)
            }
            "MUL_MAT_MANY" => Op::MulMatMany {
                biases: self.flag("biases")?,
            },
            "ADD" => Op::Add,
            "SUB" => Op::Sub,
            "MUL" => Op::Mul,
            "DIV" => Op::Div,
            "ADD_ID" => Op::AddId,
            "ACC" => Op::Accumulate {
                offset: self.count("offset")?,
            },
            "SCALE" => Op::Scale {
                factor: self.float("factor")?,
            },
            "SCALE_BIAS" => Op::ScaleBias {
                factor: self.float("factor")?,
                bias: self.float("bias")?,
            },
            "CLAMP" => Op::Clamp {
                min: self.float("min")?,
                max: self.float("max")?,
            },
            "SQR" => Op::Sqr,
            "SQRT" => Op::Sqrt,
            "LOG" => Op::Log,
            "SIN" => Op::Sin,
            "COS" => Op::Cos,
            "SOFTCAP" => Op::Softcap {
                cap: self.float("cap")?,
            },
            "NORM" => Op::LayerNorm {
                eps: self.float("eps")?,
            },
            "RMS_NORM" => Op::RmsNorm {
                eps: self.float("eps")?,
            },
            "ADD_RMS_NORM" => Op::AddRmsNorm {
                eps: self.float("eps")?,
            },
            "L2_NORM" => Op::L2Norm {
                eps: self.float("eps")?,
            },
            "SOFT_MAX" => Op::SoftMax(SoftMax {
                scale: self.float("scale")?,
                max_bias: self.float("max_bias")?,
                mask: self.flag("mask")?,
                sinks: self.flag("sinks")?,
            }),
            "DIAG_MASK_INF" | "DIAG_MASK_ZERO" => Op::DiagMask {
                n_past: self.count("n_past")?,
                fill: if name == "DIAG_MASK_INF" {
                    DiagFill::Inf
                } else {
                    DiagFill::Zero
                },
            },
            "ROPE" => Op::Rope(self.rope()?),
            "ROPE_SET_ROWS" => Op::RopeSetRows(self.rope()?),
            "FLASH_ATTN_EXT" => Op::FlashAttnExt(FlashAttnExt {
                scale: self.float("scale")?,
                max_bias: self.float("max_bias")?,
                softcap: self.float("softcap")?,
                mask: self.flag("mask")?,
                sinks: self.flag("sinks")?,
            }),
            "ATTENTION" => Op::Attention(Attention {
                heads: self.count("heads")?,
                kv_heads: self.count("kv_heads")?,
                head_dim: self.count("head_dim")?,
                scale: self.float("scale")?,
                causal: self.flag("causal")?,
                mask: if self.flag("mask")? {
                    AttentionMask::Additive
                } else {
                    AttentionMask::None
                },
            }),
            "PAGED_ATTENTION" => Op::PagedAttention(PagedAttention {
                heads: self.count("heads")?,
                kv_heads: self.count("kv_heads")?,
                head_dim: self.count("head_dim")?,
                scale: self.float("scale")?,
                block_size: self.count("block_size")?,
                window: self.optional("window", as_count)?,
                softcap: self.optional("softcap", as_float)?,
            }),
            "SSM_CONV" => Op::SsmConv,
            "SSM_SCAN" => Op::SsmScan,
            "GATED_DELTA_NET" => Op::GatedDeltaNet,
            "DUP" => Op::Dup,
            "CONT" => Op::Cont,
            "CPY" => Op::Cpy {
                to: self.optional("to", |value| dtype(value.as_str()?))?,
            },
            "CONCAT" => Op::Concat {
                axis: self.count("axis")?,
            },
            "REPEAT" => Op::Repeat,
            "PAD" => Op::Pad {
                left: self.counts("left")?,
                right: self.counts("right")?,
            },
            "RESHAPE" => Op::Reshape,
            "VIEW" => Op::View,
            "PERMUTE" => Op::Permute {
                axes: self.counts("axes")?,
            },
            "TRANSPOSE" => Op::Transpose,
            "ARGMAX" => Op::Argmax,
            "ARGSORT" => Op::Argsort {
                order: if self.flag("descending")? {
                    SortOrder::Descending
                } else {
                    SortOrder::Ascending
                },
            },
            "TOP_K" => Op::TopK { k: self.count("k")? },
            "SUM" => Op::Sum,
            "SUM_ROWS" => Op::SumRows,
            "MEAN" => Op::Mean,
            "CUMSUM" => Op::Cumsum,
            "MEAN_POOL" => Op::MeanPool,
            _ => return self.family(name),
        })
    }

    /// Members of the families whose names are their functions'.
    fn family(&mut self, name: &str) -> Result<Op, Fault> {
        if let Some(kind) = unary(name) {
            return Ok(Op::Unary(kind));
        }
        Ok(Op::Glu {
            kind: glu(name).ok_or(Fault::Op)?,
            swapped: self.flag("swapped")?,
        })
    }

    fn rope_style(&mut self) -> Result<RopeStyle, Fault> {
        let rule = "it must be `normal`, `neox`, `mrope`, `imrope` or `vision`";
        let mode = self.get("mode", rule, |value| {
            let modes = ["normal", "neox", "mrope", "imrope", "vision"];
            modes.into_iter().find(|mode| value.as_str() == Some(*mode))
        })?;
        Ok(match mode {
            "normal" => RopeStyle::Interleaved,
            "neox" => RopeStyle::HalfSplit,
            "mrope" => RopeStyle::Mrope(self.counts("sections")?),
            "imrope" => RopeStyle::Imrope(self.counts("sections")?),
            _ => RopeStyle::Vision(self.counts("sections")?),
        })
    }

    fn rope(&mut self) -> Result<Rope, Fault> {
        let scaling = self.get("scaling", "it must be `none`, `linear` or `yarn`", |value| {
            let kinds = ["none", "linear", "yarn"];
            kinds.into_iter().find(|kind| value.as_str() == Some(*kind))
        })?;
        Ok(Rope {
            n_dims: self.count("n_dims")?,
            theta: self.float("theta")?,
            style: self.rope_style()?,
            max_position: self.count("max_position")?,
            scaling: match scaling {
                "none" => RopeScaling::None,
                "linear" => RopeScaling::Linear {
                    factor: self.float("factor")?,
                },
                _ => RopeScaling::Yarn {
                    factor: self.float("factor")?,
                    original_context: self.count("original_context")?,
                    beta_fast: self.float("beta_fast")?,
                    beta_slow: self.float("beta_slow")?,
                    ext_factor: self.float("ext_factor")?,
                },
            },
            magnitude: self.float("magnitude")?,
        })
    }
}

/// A member of the UNARY family by its name.
fn unary(name: &str) -> Option<Unary> {
    Unary::ALL.into_iter().find(|kind| kind.name() == name)
}

/// A member of the GLU family by its name.
fn glu(name: &str) -> Option<GluKind> {
    GluKind::ALL.into_iter().find(|kind| kind.name() == name)
}

fn as_unary(value: &Value) -> Option<Unary> {
    unary(value.as_str()?)
}

fn as_glu(value: &Value) -> Option<GluKind> {
    glu(value.as_str()?)
}

fn as_count(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}
