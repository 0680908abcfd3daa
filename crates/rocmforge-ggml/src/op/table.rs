//! Table of ops: what each is called, what holds of it, and what it is to shape inference and to the backends.

use serde_json::{Map, Value, json};

use super::facts::Below::{Elements, First as FirstDim, Number, Rows as RowsOf};
use super::facts::Facts;
use super::facts::Indices::{No, Of, OfBoth, Paged};
use super::facts::Output::{self, Alias, Own, Second, SecondIfAny, SecondRead};
use super::facts::Rows::{Each, First as FirstRow, Mixed};
use super::facts::Types::{Any, Caches, Encodable, F32, Floats, Numbers, Weights, WeightsOrNumbers};
use super::parameters::{Fault, Parameter, Reader, alternatives, member, structures};
use crate::planner::Overwrites::{self, Both, First, Nothing};
use crate::{
    Attention, DiagFill, FlashAttnExt, GluKind, Op, PagedAttention, PoolKind, Rope, RopeScaling, RopeStyle, Route,
    RouteGate, SoftMax, TriKind, Unary, UpscaleMode,
};

/// Calls a macro with the table. The macros are `describe` below, `rules` of shape inference, `compute` of the CPU, and `kernels` of devices. `describe`
/// makes names, facts and parameters of it; each of the others makes one exhaustive `match` of its column. Functions in a column are those of that part's modules.
///
/// A row is:
/// * the op's name, its variant, and for each field the name of the parameter. A structure of parameters (`own`) has names of its own. The
///   members of a family have names of their own: `_`, and the field with the member.
/// * in brackets the op's facts ([`Facts`]): where the output lies, operands that it may overwrite, rows that a row of it depends on; types of the
///   operand that may be of several, operands that hold indices.
/// * `shape`: what the operands determine of the outputs, from the checks of a node.
/// * `cpu`: the function of the operands `x` into the outputs `y`.
/// * `hip`: which operands kernels take, and their launch; nothing where there is no kernel.
macro_rules! ops {
    ($part:ident) => {
        $part! {
        "GET_ROWS" GetRows [Own Nothing Mixed, WeightsOrNumbers Of(1, RowsOf(0))]
            shape rows::get,
            cpu |x, y, _| rows::get_rows(&x[0], &x[1], y),
            hip (indexed::get_rows, |b, op, x, y, _| b.get_rows(op, x, y[0]))
        "SET_ROWS" SetRows [Second Nothing Mixed, Encodable Of(2, RowsOf(1))]
            shape rows::set,
            cpu |x, y, _| rows::set_rows(&x[0], &x[2], y.first()),
            hip (indexed::set_rows, |b, op, x, y, _| b.set_rows(op, x, y[0]))
        "MUL_MAT" MulMat [Own Nothing FirstRow, Weights No]
            shape products::mul_mat,
            cpu |x, y, on| products::mul_mat(&x[0], &x[1], x.get(2), on, y.one()),
            hip (products::mul_mat, |b, op, x, y, with| b.matmul(op, x, y[0], with))
        "MUL_MAT_ID" MulMatId [Own Nothing Mixed, Weights Of(2, FirstDim(1))]
            shape products::mul_mat_id,
            cpu |x, y, on| products::mul_mat_id(&x[0], &x[1], &x[2], on, y.one()),
            hip (products::mul_mat_id, |b, _, x, y, _| b.matmul_id(x, y[0]))
        "ARANGE" Arange { start: start, stop: stop, step: step } [Own Nothing Mixed, Floats No]
            shape |at| rows::arange(at, [start, stop, step]),
            cpu |_, y, _| rows::arange([start, step].map(f64::from), y.one()),
            hip ()
        "FILL" Fill { value: value } [Own First Mixed, Floats No]
            shape |at| at.number("value", value).and_then(|()| at.unary()),
            cpu |_, y, _| y.one().fill(value),
            hip ()
        "ADD" Add [Own Both Each, Floats No]
            shape At::broadcast,
            cpu |x, y, on| elementwise::broadcast(&x[0], &x[1], y.one(), on.threads, |a, b| a + b),
            hip (elementwise::binary, |b, op, x, y, _| b.binary(op, Binary::Add, x, y[0]))
        "SUB" Sub [Own Both Each, Floats No]
            shape At::broadcast,
            cpu |x, y, on| elementwise::broadcast(&x[0], &x[1], y.one(), on.threads, |a, b| a - b),
            hip (elementwise::binary, |b, op, x, y, _| b.binary(op, Binary::Sub, x, y[0]))
        "MUL" Mul [Own Both Each, Floats No]
            shape At::broadcast,
            cpu |x, y, on| elementwise::broadcast(&x[0], &x[1], y.one(), on.threads, |a, b| a * b),
            hip (elementwise::binary, |b, op, x, y, _| b.binary(op, Binary::Mul, x, y[0]))
        "DIV" Div [Own Both Each, Floats No]
            shape At::broadcast,
            cpu |x, y, on| elementwise::broadcast(&x[0], &x[1], y.one(), on.threads, |a, b| a / b),
            hip (elementwise::binary, |b, op, x, y, _| b.binary(op, Binary::Div, x, y[0]))
        "ADD_ID" AddId [Own First Mixed, Floats Of(2, FirstDim(1))]
            shape products::add_id,
            cpu |x, y, _| rows::add_id(&x[0], &x[1], &x[2], y.one()),
            hip (indexed::add_id, |b, op, x, y, _| b.add_id(op, x, y[0]))
        "ACC" Accumulate { offset: offset } [SecondRead Nothing Mixed, Floats No]
            shape |at| rows::accumulate(at, offset),
            cpu |x, y, _| rows::accumulate(&x[0], &x[1], offset, y.one()),
            hip (copies::accumulate, |b, op, x, y, _| b.accumulate(op, offset, x[0], y[0]))
        "SCALE" Scale { factor: factor } [Own First FirstRow, Floats No]
            shape |at| at.number("factor", factor).and_then(|()| at.unary()),
            cpu |x, y, on| elementwise::map(&x[0], y.one(), on.threads, |x| x * factor),
            hip (elementwise::map, |b, op, x, y, _| b.map(op, Map::Affine { factor, add: 0.0 }, x, y[0]))
        "SCALE_BIAS" ScaleBias { factor: factor, bias: bias } [Own First FirstRow, Floats No]
            shape |at| rows::scale_bias(at, factor, bias),
            cpu |x, y, on| elementwise::map(&x[0], y.one(), on.threads, |x| x * factor + bias),
            hip (elementwise::map, |b, op, x, y, _| b.map(op, Map::Affine { factor, add: bias }, x, y[0]))
        "CLAMP" Clamp { min: min, max: max } [Own First FirstRow, Floats No]
            shape |at| rows::clamp(at, min, max),
            cpu |x, y, on| elementwise::map(&x[0], y.one(), on.threads, elementwise::clamp(min, max)),
            hip (elementwise::map, |b, op, x, y, _| b.map(op, Map::Clamp { min, max }, x, y[0]))
        "SQR" Sqr [Own First FirstRow, Floats No]
            shape At::unary,
            cpu |x, y, on| elementwise::map(&x[0], y.one(), on.threads, |x| x * x),
            hip (elementwise::map, |b, op, x, y, _| b.map(op, Map::Sqr, x, y[0]))
        "SQRT" Sqrt [Own First FirstRow, Floats No]
            shape At::unary,
            cpu |x, y, on| elementwise::map(&x[0], y.one(), on.threads, f32::sqrt),
            hip (elementwise::map, |b, op, x, y, _| b.map(op, Map::Sqrt, x, y[0]))
        "LOG" Log [Own First FirstRow, Floats No]
            shape At::unary,
            cpu |x, y, on| elementwise::map(&x[0], y.one(), on.threads, f32::ln),
            hip (elementwise::map, |b, op, x, y, _| b.map(op, Map::Log, x, y[0]))
        "SIN" Sin [Own First FirstRow, Floats No]
            shape At::unary,
            cpu |x, y, on| elementwise::map(&x[0], y.one(), on.threads, f32::sin),
            hip (elementwise::map, |b, op, x, y, _| b.map(op, Map::Sin, x, y[0]))
        "COS" Cos [Own First FirstRow, Floats No]
            shape At::unary,
            cpu |x, y, on| elementwise::map(&x[0], y.one(), on.threads, f32::cos),
            hip (elementwise::map, |b, op, x, y, _| b.map(op, Map::Cos, x, y[0]))
        "SOFTCAP" Softcap { cap: cap } [Own First FirstRow, Floats No]
            shape |at| at.positive("cap", cap).and_then(|()| at.unary()),
            cpu |x, y, on| elementwise::map(&x[0], y.one(), on.threads, |x| cap * (x / cap).tanh()),
            hip (all_floats, |b, op, x, y, _| b.softcap(op, cap, x, y[0]))
        "NORM" LayerNorm { eps: eps } [Own First FirstRow, Floats No]
            shape |at| rows::norm(at, eps, 2, "x, optional weight and bias, and 1 output"),
            cpu |x, y, on| norm::layer_norm(&x[0], x.get(1), x.get(2), eps, y.one(), on.threads),
            hip (rows::by_teams, |b, op, x, y, _| b.layer_norm(op, eps, x, y[0]))
        "RMS_NORM" RmsNorm { eps: eps } [Own First FirstRow, Floats No]
            shape |at| rows::norm(at, eps, 1, "x, optional weight, and 1 output"),
            cpu |x, y, on| norm::rms_norm(&x[0], x.get(1), eps, y.one(), on.threads),
            hip (rows::by_teams, |b, op, x, y, with| b.rms_norm(op, eps, x, y[0], with))
        "L2_NORM" L2Norm { eps: eps } [Own First FirstRow, Floats No]
            shape |at| at.not_negative("eps", eps).and_then(|()| at.unary()),
            cpu |x, y, on| norm::l2_norm(&x[0], eps, y.one(), on.threads),
            hip (rows::by_long_teams, |b, op, x, y, _| b.l2_norm(op, eps, x, y[0]))
        "SOFT_MAX" SoftMax { 0: own } [Own First if own.mask || own.sinks { Mixed } else { FirstRow }, Floats No]
            shape |at| attention::soft_max(at, &own),
            cpu |x, y, on| soft_max::soft_max(x, own, y.one(), on.threads),
            hip (|x, y| rows::soft_max(own, x, y), |b, op, x, y, _| b.soft_max(op, own, x, y[0]))
        _ DiagMask (fill: fill of DiagFill) { n_past: n_past } [Own First Mixed, Floats No]
            shape rows::diag_mask,
            cpu |x, y, _| soft_max::diag_mask(&x[0], n_past, fill, y.one()),
            hip (rows::by_tiles, |b, op, x, y, _| b.diag_mask(op, (n_past, fill), x, y[0]))
        "ROPE" Rope { 0: own } [Own First Mixed, Floats Of(1, Number(own.max_position))]
            shape |at| rope::rope(at, own),
            cpu |x, y, _| rope::rope(&x[0], &x[1], x.get(2), own, y.one()),
            hip (|x, y| rope::rope(own, x, y), |b, op, x, y, _| b.rope(op, own, x, y[0]))
        "FLASH_ATTN_EXT" FlashAttnExt { 0: own } [Own Nothing Mixed, Weights No]
            shape |at| attention::ext(at, &own),
            cpu |x, y, on| flash_attn::attention(x, own, y.one(), on.threads),
            hip (attention::flash_attn_ext, |b, op, x, y, _| b.flash_attn_ext(op, own, x, y[0]))
        "ATTENTION" Attention { 0: own } [Own Nothing Mixed, Floats No]
            shape |at| attention::whole(at, &own),
            cpu |x, y, on| attention::attention(x, own, y.one(), on.threads),
            hip (|x, y| attention::attention(own, x, y), |b, op, x, y, _| b.attention(op, own, x, y[0]))
        "PAGED_ATTENTION" PagedAttention { 0: own } [Own Nothing Mixed, Caches Paged(own)]
            shape |at| attention::paged(at, &own),
            cpu |x, y, on| paged::attention(x, own, y.one(), on.threads),
            hip (|x, y| attention::paged_attention(own, x, y),
                |b, op, x, y, with| b.paged_attention(op, own, x, y[0], with))
        "SSM_CONV" SsmConv [Own Nothing Mixed, F32 OfBoth([(3, Elements(4)), (4, FirstDim(0))])]
            shape recurrent::conv,
            cpu |x, y, on| recurrent::conv(x, y.words(), on.threads),
            hip (recurrent::conv, |b, op, x, y, _| b.ssm_conv(op, x, y, None))
        "SSM_SCAN" SsmScan [Own Nothing Mixed, F32 OfBoth([(6, Elements(7)), (7, FirstDim(0))])]
            shape recurrent::scan,
            cpu |x, y, on| recurrent::scan(x, y.words(), on.threads),
            hip (recurrent::rows, |b, op, x, y, _| b.ssm_scan(op, x, y))
        "GATED_DELTA_NET" GatedDeltaNet [Own Nothing Mixed, F32 OfBoth([(6, Elements(7)), (7, FirstDim(0))])]
            shape recurrent::delta_net,
            cpu |x, y, on| recurrent::delta_net(x, y.words(), on.threads),
            hip (recurrent::rows, |b, op, x, y, _| b.delta_net(op, x, y))
        "DELTA_NET_ROWS" DeltaNetRows { eps: eps, neighbours: neighbours } [Own Nothing Mixed, F32 OfBoth([(6, Elements(7)), (7, FirstDim(0))])]
            shape |at| recurrent::delta_net_rows(at, eps),
            cpu |x, y, on| recurrent::delta_net_rows(x, (eps, neighbours), y.words(), on.threads),
            hip (recurrent::rows, |b, op, x, y, _| b.delta_net_rows(op, (eps, neighbours), x, y, None))
        "GROUP_NORM" GroupNorm { n_groups: n_groups, eps: eps } [Own Nothing Mixed, Floats No]
            shape |at| planes::group_norm(at, n_groups, eps),
            cpu |x, y, _| planes::group_norm(&x[0], n_groups, eps, y.one()),
            hip ()
        "TRI" Tri { kind: kind } [Own Nothing Mixed, Floats No]
            shape planes::tri,
            cpu |x, y, _| planes::tri(&x[0], kind, y.one()),
            hip ()
        "SOLVE_TRI" SolveTri [Own Nothing Mixed, Floats No]
            shape planes::solve_tri,
            cpu |x, y, _| planes::solve_tri(&x[0], &x[1], y.one()),
            hip ()
        "IM2COL" Im2col { stride: stride, padding: padding, dilation: dilation } [Own Nothing Mixed, Floats No]
            shape |at| planes::im2col(at, [stride, padding, dilation]),
            cpu |x, y, _| planes::im2col(x[0].shape, &x[1], [stride, padding, dilation], y.one()),
            hip ()
        "CONV_2D" Conv2d { stride: stride, padding: padding, dilation: dilation } [Own Nothing Mixed, Floats No]
            shape |at| planes::conv(at, [stride, padding, dilation]),
            cpu |x, y, on| planes::conv(&x[0], &x[1], [stride, padding, dilation], y.one(), on.threads),
            hip ()
        "POOL_1D" Pool1d { kind: kind, kernel: kernel, stride: stride, padding: padding } [Own Nothing Mixed, Floats No]
            shape |at| planes::pool(at, [&[kernel], &[stride], &[padding]]),
            cpu |x, y, _| planes::pool(&x[0], kind, [[1, kernel], [1, stride], [0, padding]], true, y.one()),
            hip ()
        "POOL_2D" Pool2d { kind: kind, kernel: kernel, stride: stride, padding: padding } [Own Nothing Mixed, Floats No]
            shape |at| planes::pool(at, [&kernel, &stride, &padding]),
            cpu |x, y, _| planes::pool(&x[0], kind, [kernel, stride, padding], false, y.one()),
            hip ()
        "UPSCALE" Upscale { mode: mode, height: height, width: width } [Own Nothing Mixed, Floats No]
            shape |at| planes::upscale(at, [height, width]),
            cpu |x, y, _| planes::upscale(&x[0], mode, [height, width], y.one()),
            hip ()
        "DUP" Dup [Own Nothing Mixed, Any No]
            shape moves::dup,
            cpu |x, y, _| y.put(x[0].units()),
            hip (copies::moves, |b, op, x, y, _| b.move_elements(op, x[0], y[0]))
        "CONT" Cont [Own Nothing Mixed, Any No]
            shape moves::dup,
            cpu |x, y, _| y.put(x[0].units()),
            hip (copies::moves, |b, op, x, y, _| b.move_elements(op, x[0], y[0]))
        "CPY" Cpy { to: to } [SecondIfAny Nothing Mixed, Any No]
            shape |at| moves::cpy(at, to),
            cpu |x, y, _| moves::cpy(&x[0], y),
            hip (copies::moves, |b, op, x, y, _| b.move_elements(op, x[0], y[0]))
        "CONCAT" Concat { axis: axis } [Own Nothing Mixed, Any No]
            shape |at| moves::concat(at, axis),
            cpu |x, y, _| y.put(moves::concat(&x[0], &x[1], axis)),
            hip (|x, y| copies::concat(axis, x, y), |b, op, x, y, _| b.concat(op, axis, x, y[0]))
        "REPEAT" Repeat [Own Nothing Mixed, Any No]
            shape moves::repeat,
            cpu |x, y, _| moves::repeat(&x[0], y),
            hip (copies::repeats, |b, op, x, y, _| b.move_elements(op, x[0], y[0]))
        "PAD" Pad { left: left, right: right } [Own Nothing Mixed, Numbers No]
            shape |at| moves::pad(at, left, right),
            cpu |x, y, _| moves::pad(&x[0], left, y),
            hip (|x, y| copies::pad(&left, x, y), |b, op, x, y, _| b.pad(op, &left, x[0], y[0]))
        "RESHAPE" Reshape [Alias Nothing Mixed, Any No]
            shape moves::reshape,
            cpu |x, y, _| y.put(x[0].units()),
            hip (copies::moves, |b, op, x, y, _| b.move_elements(op, x[0], y[0]))
        "VIEW" View [Alias Nothing Mixed, Any No]
            shape moves::view,
            cpu |x, y, _| y.put(x[0].units()),
            hip (copies::moves, |b, op, x, y, _| b.move_elements(op, x[0], y[0]))
        "PERMUTE" Permute { axes: axes } [Alias Nothing Mixed, Any No]
            shape |at| moves::permute(at, axes),
            cpu |x, y, _| moves::permute(&x[0], axes, y),
            hip (|x, y| copies::permuted(&Op::Permute { axes }, x, y), |b, op, x, y, _| b.move_elements(op, x[0], y[0]))
        "TRANSPOSE" Transpose [Alias Nothing Mixed, Any No]
            shape moves::transpose,
            cpu |x, y, _| moves::transpose(&x[0], y),
            hip (|x, y| copies::permuted(&Op::Transpose, x, y), |b, op, x, y, _| b.move_elements(op, x[0], y[0]))
        "ARGMAX" Argmax [Own Nothing Mixed, Floats No]
            shape rows::arg_max,
            cpu |x, y, _| select::arg_max(&x[0], y.indices()),
            hip (rows::columns, |b, op, x, y, _| b.arg_max(op, x[0], y[0]))
        "ARGSORT" Argsort { order: descending } [Own Nothing Mixed, Floats No]
            shape rows::arg_sort,
            cpu |x, y, _| select::arg_sort(&x[0], descending, y.indices()),
            hip (rows::arg_sort, |b, op, x, y, _| b.arg_sort(op, descending, x[0], y[0]))
        "TOP_K" TopK { k: k } [Own Nothing Mixed, Floats No]
            shape |at| rows::top_k(at, k),
            cpu |x, y, _| select::top_k(&x[0], k, y.indices()),
            hip (|x, y| rows::top_k(k, x, y), |b, op, x, y, _| b.top_k(op, k, x[0], y[0]))
        "ROUTE" Route { 0: own } [Own Nothing Mixed, F32 No]
            shape |at| rows::route(at, own),
            cpu |x, y, _| route::route(x, own, y.words()),
            hip (|x, y| rows::route(own, x, y), |b, op, x, y, _| b.route(op, own, x, y))
        "SUM" Sum [Own Nothing Mixed, Floats No]
            shape rows::sum,
            cpu |x, y, _| reduce::total(&x[0], y.one()),
            hip (all_floats, |b, op, x, y, _| b.sum(op, x[0], y[0]))
        "SUM_ROWS" SumRows [Own Nothing Mixed, Floats No]
            shape |at| at.row_to(1, None),
            cpu |x, y, _| reduce::rows(&x[0], y.one(), |_| 1.0),
            hip (rows::by_teams, |b, op, x, y, _| b.sum_rows(op, 1.0, x, y[0]))
        "MEAN" Mean [Own Nothing Mixed, Floats No]
            shape rows::mean,
            cpu |x, y, _| reduce::rows(&x[0], y.one(), |n| 1.0 / n),
            hip (rows::by_teams, |b, op, x, y, _| b.mean(op, x, y[0]))
        "CUMSUM" Cumsum [Own Nothing Mixed, Floats No]
            shape rows::cumsum,
            cpu |x, y, _| reduce::running(&x[0], y.one()),
            hip (rows::by_blocks, |b, op, x, y, _| b.cumsum(op, x, y[0]))
        "MEAN_POOL" MeanPool [Own Nothing Mixed, Floats No]
            shape rows::mean_pool,
            cpu |x, y, _| rows::mean_pool(&x[0], &x[1], y.one()),
            hip (rows::mean_pool, |b, op, x, y, _| b.mean_pool(op, x, y[0]))
        _ Unary (0: kind of Unary) [Own First FirstRow, Floats No]
            shape At::unary,
            cpu |x, y, on| elementwise::map(&x[0], y.one(), on.threads, unary::function(kind)),
            hip (elementwise::map, |b, op, x, y, _| b.map(op, Map::Unary(kind), x, y[0]))
        _ Glu (kind: kind of GluKind) { swapped: swapped } [Own Both Each, Floats No]
            shape |at| rows::glu(at, swapped),
            cpu |x, y, on| elementwise::glu(x, kind, swapped, y.one(), on.threads),
            hip (rows::by_tiles, |b, op, x, y, _| b.glu(op, (kind, swapped), x, y[0]))
        }
    };
}
pub(crate) use ops;

/// A name of the table, or that of a family's member.
macro_rules! name {
    ($name:literal) => {
        $name
    };
    (_ $of_member:expr) => {
        $of_member
    };
}

macro_rules! describe {
    ($(
        $name:tt $variant:ident $(($member:tt: $kind:ident of $family:ident))? $({ $($field:tt: $parameter:ident),* })?
            [$output:ident $overwrites:ident $rows:expr, $types:ident $indices:expr]
            shape $shape:expr, cpu $cpu:expr, hip ($($hip:tt)*)
    )*) => {
        impl Op {
            /// The op's name, as in messages and graph files: ggml's.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match *self {
                    $(Self::$variant { $($member: $kind,)? .. } => name!($name $($family::name($kind))?),)*
                }
            }

            /// The op's facts.
            #[allow(unused_variables)]
            pub(crate) const fn facts(&self) -> Facts {
                match *self {
                    $(Self::$variant { $($member: $kind,)? $($($field: $parameter),*)? } => Facts {
                        output: $output,
                        overwrites: $overwrites,
                        rows: $rows,
                        types: $types,
                        indices: $indices,
                    },)*
                }
            }

            /// Where the output of the op of a name lies and what it may overwrite, if it is one of ours.
            pub(crate) fn memory_of(name: &str) -> Option<(Output, Overwrites)> {
                match name {
                    $($name $(if member($family::ALL, $family::name, name).is_some())? => Some(($output, $overwrites)),)*
                    _ => None,
                }
            }

            /// The op's parameters.
            pub(crate) fn parameters(&self) -> Map<String, Value> {
                let mut to = Map::new();
                match self {
                    $(Self::$variant { $($member: _,)? $($($field: $parameter),*)? } => {
                        $($($parameter.write(stringify!($parameter), &mut to);)*)?
                    })*
                }
                to
            }

            /// The op of a name, without a look at parameters that are not its own.
            fn of(name: &str, from: &Reader<'_>) -> Result<Self, Fault> {
                Ok(match name {
                    $($name $(if member($family::ALL, $family::name, name).is_some())? => Self::$variant {
                        $($member: member($family::ALL, $family::name, name).ok_or(Fault::Op)?,)?
                        $($($field: Parameter::read(stringify!($parameter), from)?),*)?
                    },)*
                    _ => return Err(Fault::Op),
                })
            }
        }
    };
}

ops!(describe);

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

// Parameters that are several.
structures! {
    SoftMax { scale, max_bias, mask, sinks }
    FlashAttnExt { scale, max_bias, softcap, mask, sinks }
    Attention { heads, kv_heads, head_dim, scale, causal, mask }
    PagedAttention { heads, kv_heads, head_dim, scale, block_size, window, softcap, sinks }
    Rope { n_dims, theta, style, max_position, magnitude, scaling }
    Route { k, gate, groups, normalised, least_sum, factor }
}

alternatives! { RopeStyle, "mode", "it must be `normal`, `neox`, `mrope`, `imrope` or `vision`":
    "normal" Interleaved {}
    "neox" HalfSplit {}
    "mrope" Mrope { 0: sections }
    "imrope" Imrope { 0: sections }
    "vision" Vision { 0: sections }
}

alternatives! { RopeScaling, "scaling", "it must be `none`, `linear` or `yarn`":
    "none" None {}
    "linear" Linear { factor: factor }
    "yarn" Yarn {
        factor: factor, original_context: original_context, beta_fast: beta_fast, beta_slow: beta_slow,
        ext_factor: ext_factor
    }
}

alternatives! { RouteGate, "gate", "it must be `softmax`, `softmax_of_chosen` or `sigmoid`":
    "softmax" SoftMax {}
    "softmax_of_chosen" SoftMaxOfChosen {}
    "sigmoid" Sigmoid {}
}

alternatives! { TriKind, "kind", "it must be `upper_diag`, `upper`, `lower_diag` or `lower`":
    "upper_diag" UpperDiag {}
    "upper" Upper {}
    "lower_diag" LowerDiag {}
    "lower" Lower {}
}

alternatives! { PoolKind, "kind", "it must be `max` or `avg`":
    "max" Max {}
    "avg" Avg {}
}

alternatives! { UpscaleMode, "mode", "it must be `nearest` or `bilinear`":
    "nearest" Nearest {}
    "bilinear" Bilinear {}
}
