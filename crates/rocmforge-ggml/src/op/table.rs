//! Table of ops: the name, the parameters and the facts of each.

use serde_json::{Map, Value};

use super::facts::Below::{Elements, First as FirstDim, Number, Rows as RowsOf};
use super::facts::Facts;
use super::facts::Indices::{No, Of, OfBoth, Paged};
use super::facts::Output::{Alias, Own, Second, SecondIfAny, SecondRead};
use super::facts::Rows::{Each, First as FirstRow, Mixed};
use super::facts::Types::{Any, Caches, Encodable, F32, Floats, Numbers, Weights, WeightsOrNumbers};
use super::parameters::{Fault, Parameter, Reader, member};
use crate::planner::Overwrites::{self, Both, First, Nothing};
use crate::{DiagFill, GluKind, Op, Unary};

/// A row is an op's name, its variant, for each field the name of the parameter, and the op's facts ([`Facts`]). After `;` is a field that the
/// name decides. A structure of parameters has names of its own. Last come families, whose members have names of their own.
macro_rules! ops {
    (
        $($name:literal $variant:ident $({ $($field:tt: $parameter:ident),* $(; $decided:ident: $value:path)? })?
            [$output:ident $overwrites:ident $rows:expr, $types:ident $indices:expr])*
        families
        $($family:ident { $member:tt: $kind:ident $(, $own:ident)? }
            [$all_output:ident $all_overwrites:ident $all_rows:expr, $all_types:ident $all_indices:expr])*
    ) => {
        impl Op {
            /// The op's name, as in messages and graph files: ggml's.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { $($($decided: $value,)?)? .. } => $name,)*
                    $(Self::$family { $member: kind, .. } => kind.name(),)*
                }
            }

            /// The op's facts.
            pub(crate) const fn facts(&self) -> Facts {
                match *self {
                    $(
                        #[allow(unused_variables)]
                        Self::$variant { $($($field: $parameter,)* $($decided: $value,)?)? } => Facts {
                            output: $output,
                            overwrites: $overwrites,
                            rows: $rows,
                            types: $types,
                            indices: $indices,
                        },
                    )*
                    $(Self::$family { .. } => Facts {
                        output: $all_output,
                        overwrites: $all_overwrites,
                        rows: $all_rows,
                        types: $all_types,
                        indices: $all_indices,
                    },)*
                }
            }

            /// What the result of the op of a name may overwrite, if it is one of ours.
            pub(crate) fn overwrites_of(name: &str) -> Option<Overwrites> {
                match name {
                    $($name => Some($overwrites),)*
                    _ => {
                        $(if member($kind::ALL, $kind::name, name).is_some() {
                            return Some($all_overwrites);
                        })*
                        None
                    }
                }
            }

            /// The op's parameters.
            pub(crate) fn parameters(&self) -> Map<String, Value> {
                let mut to = Map::new();
                match self {
                    $(Self::$variant { $($($field: $parameter,)* $($decided: $value,)?)? } => {
                        $($($parameter.write(stringify!($parameter), &mut to);)*)?
                    })*
                    $(Self::$family { $member: _ $(, $own)? } => {
                        $($own.write(stringify!($own), &mut to);)?
                    })*
                }
                to
            }

            /// The op of a name, without a look at parameters that are not its own.
            fn of(name: &str, from: &Reader<'_>) -> Result<Self, Fault> {
                Ok(match name {
                    $($name => Self::$variant {
                        $($($field: Parameter::read(stringify!($parameter), from)?,)* $($decided: $value,)?)?
                    },)*
                    _ => {
                        $(if let Some(kind) = member($kind::ALL, $kind::name, name) {
                            return Ok(Self::$family {
                                $member: kind,
                                $($own: Parameter::read(stringify!($own), from)?,)?
                            });
                        })*
                        return Err(Fault::Op);
                    }
                })
            }
        }
    };
}

// Facts: where the output lies, operands that it may overwrite, rows that a row of it depends on, types of the operand that may be of several,
// operands that hold indices.
ops! {
    "GET_ROWS" GetRows                              [Own Nothing Mixed, WeightsOrNumbers Of(1, RowsOf(0))]
    "SET_ROWS" SetRows                              [Second Nothing Mixed, Encodable Of(2, RowsOf(1))]
    "MUL_MAT" MulMat                                [Own Nothing FirstRow, Weights No]
    "MUL_MAT_ID" MulMatId                           [Own Nothing Mixed, Weights Of(2, FirstDim(1))]
    "ARANGE" Arange { start: start, stop: stop, step: step } [Own Nothing Mixed, Floats No]
    "FILL" Fill { value: value }                    [Own First Mixed, Floats No]
    "ADD" Add                                       [Own Both Each, Floats No]
    "SUB" Sub                                       [Own Both Each, Floats No]
    "MUL" Mul                                       [Own Both Each, Floats No]
    "DIV" Div                                       [Own Both Each, Floats No]
    "ADD_ID" AddId                                  [Own First Mixed, Floats Of(2, FirstDim(1))]
    "ACC" Accumulate { offset: offset }             [SecondRead Nothing Mixed, Floats No]
    "SCALE" Scale { factor: factor }                [Own First FirstRow, Floats No]
    "SCALE_BIAS" ScaleBias { factor: factor, bias: bias } [Own First FirstRow, Floats No]
    "CLAMP" Clamp { min: min, max: max }            [Own First FirstRow, Floats No]
    "SQR" Sqr                                       [Own First FirstRow, Floats No]
    "SQRT" Sqrt                                     [Own First FirstRow, Floats No]
    "LOG" Log                                       [Own First FirstRow, Floats No]
    "SIN" Sin                                       [Own First FirstRow, Floats No]
    "COS" Cos                                       [Own First FirstRow, Floats No]
    "SOFTCAP" Softcap { cap: cap }                  [Own First FirstRow, Floats No]
    "NORM" LayerNorm { eps: eps }                   [Own First FirstRow, Floats No]
    "RMS_NORM" RmsNorm { eps: eps }                 [Own First FirstRow, Floats No]
    "L2_NORM" L2Norm { eps: eps }                   [Own First FirstRow, Floats No]
    "SOFT_MAX" SoftMax { 0: own }                   [Own First if own.mask || own.sinks { Mixed } else { FirstRow }, Floats No]
    "DIAG_MASK_INF" DiagMask { n_past: n_past; fill: DiagFill::Inf } [Own First Mixed, Floats No]
    "DIAG_MASK_ZERO" DiagMask { n_past: n_past; fill: DiagFill::Zero } [Own First Mixed, Floats No]
    "ROPE" Rope { 0: own }                          [Own First Mixed, Floats Of(1, Number(own.max_position))]
    "FLASH_ATTN_EXT" FlashAttnExt { 0: own }        [Own Nothing Mixed, Weights No]
    "ATTENTION" Attention { 0: own }                [Own Nothing Mixed, Floats No]
    "PAGED_ATTENTION" PagedAttention { 0: own }     [Own Nothing Mixed, Caches Paged(own)]
    "SSM_CONV" SsmConv                              [Own Nothing Mixed, F32 OfBoth([(3, Elements(4)), (4, FirstDim(0))])]
    "SSM_SCAN" SsmScan                              [Own Nothing Mixed, F32 OfBoth([(6, Elements(7)), (7, FirstDim(0))])]
    "GATED_DELTA_NET" GatedDeltaNet                 [Own Nothing Mixed, F32 OfBoth([(6, Elements(7)), (7, FirstDim(0))])]
    "GROUP_NORM" GroupNorm { n_groups: n_groups, eps: eps } [Own Nothing Mixed, Floats No]
    "TRI" Tri { kind: kind }                        [Own Nothing Mixed, Floats No]
    "SOLVE_TRI" SolveTri                            [Own Nothing Mixed, Floats No]
    "IM2COL" Im2col { stride: stride, padding: padding, dilation: dilation } [Own Nothing Mixed, Floats No]
    "CONV_2D" Conv2d { stride: stride, padding: padding, dilation: dilation } [Own Nothing Mixed, Floats No]
    "POOL_1D" Pool1d { kind: kind, kernel: kernel, stride: stride, padding: padding } [Own Nothing Mixed, Floats No]
    "POOL_2D" Pool2d { kind: kind, kernel: kernel, stride: stride, padding: padding } [Own Nothing Mixed, Floats No]
    "UPSCALE" Upscale { mode: mode, height: height, width: width } [Own Nothing Mixed, Floats No]
    "DUP" Dup                                       [Own Nothing Mixed, Any No]
    "CONT" Cont                                     [Own Nothing Mixed, Any No]
    "CPY" Cpy { to: to }                            [SecondIfAny Nothing Mixed, Any No]
    "CONCAT" Concat { axis: axis }                  [Own Nothing Mixed, Any No]
    "REPEAT" Repeat                                 [Own Nothing Mixed, Any No]
    "PAD" Pad { left: left, right: right }          [Own Nothing Mixed, Numbers No]
    "RESHAPE" Reshape                               [Alias Nothing Mixed, Any No]
    "VIEW" View                                     [Alias Nothing Mixed, Any No]
    "PERMUTE" Permute { axes: axes }                [Alias Nothing Mixed, Any No]
    "TRANSPOSE" Transpose                           [Alias Nothing Mixed, Any No]
    "ARGMAX" Argmax                                 [Own Nothing Mixed, Floats No]
    "ARGSORT" Argsort { order: descending }         [Own Nothing Mixed, Floats No]
    "TOP_K" TopK { k: k }                           [Own Nothing Mixed, Floats No]
    "ROUTE" Route { 0: own }                        [Own Nothing Mixed, F32 No]
    "SUM" Sum                                       [Own Nothing Mixed, Floats No]
    "SUM_ROWS" SumRows                              [Own Nothing Mixed, Floats No]
    "MEAN" Mean                                     [Own Nothing Mixed, Floats No]
    "CUMSUM" Cumsum                                 [Own Nothing Mixed, Floats No]
    "MEAN_POOL" MeanPool                            [Own Nothing Mixed, Floats No]

    families
    Unary { 0: Unary }                              [Own First FirstRow, Floats No]
    Glu { kind: GluKind, swapped }                  [Own Both Each, Floats No]
}

impl Op {
    /// The op and its parameters: equal exactly when the ops compute the same, to every bit of a number.
    #[must_use]
    pub fn signature(&self) -> (&'static str, String) {
        (self.name(), Value::Object(self.parameters()).to_string())
    }

    /// The op of a name and its parameters.
    ///
    /// # Errors
    /// The name is no op's, or the parameters are not exactly its own.
    pub(crate) fn read(name: &str, params: Option<&Map<String, Value>>) -> Result<Self, Fault> {
        let op = Self::of(name, &Reader(params))?;
        let own = op.parameters();
        let mut names = params.into_iter().flat_map(Map::keys);
        match names.find(|&name| !own.contains_key(name)) {
            None => Ok(op),
            Some(other) => Err(Fault::Parameter {
                name: other.clone(),
                rule: "the op has no such parameter",
            }),
        }
    }
}
