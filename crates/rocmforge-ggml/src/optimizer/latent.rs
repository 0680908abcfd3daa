//! The launches between the products of latent attention and its attention: queries put together, and what is kept of a token normed, turned and written to the
//! cache.

use super::join::Rules;
use crate::{DType, Kernel, Launch, Op, TensorDesc, TensorId};

/// CONT, ROPE and CONCAT of queries, CONT and RMS_NORM of the first part of what is kept, CONT and ROPE of the rest, CONCAT and SET_ROWS. There is no ROPE in a
/// model without rotary embedding, and of one token, whose row has no gaps, no CONT of a part of it that is not reshaped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LatentRows<'a> {
    /// The queries' part that is turned.
    pub(crate) part_q: &'a Launch,
    pub(crate) rope_q: Option<&'a Launch>,
    pub(crate) row_q: &'a Launch,
    pub(crate) own: Option<&'a Launch>,
    pub(crate) norm: &'a Launch,
    part_k: Option<&'a Launch>,
    rope_k: Option<&'a Launch>,
    row_k: &'a Launch,
    pub(crate) set: &'a Launch,
}

impl<'a> LatentRows<'a> {
    /// Those that some launches begin with, and how many they are.
    pub(crate) fn of(launches: &'a [Launch]) -> Option<(Self, usize)> {
        let mut rest = launches;
        let mut next = |is: fn(&Kernel) -> bool| {
            let (first, after) = rest.split_first()?;
            is(&first.kernel).then(|| {
                rest = after;
                first
            })
        };
        let cont = |kernel: &Kernel| *kernel == Kernel::Op(Op::Cont);
        let rope = |kernel: &Kernel| matches!(kernel, Kernel::Op(Op::Rope(_)));
        let found = Self {
            part_q: next(cont)?,
            rope_q: next(rope),
            row_q: next(|kernel| *kernel == Kernel::Op(Op::Concat { axis: 2 }))?,
            own: next(cont),
            norm: next(|kernel| matches!(kernel, Kernel::Op(Op::RmsNorm { .. })))?,
            part_k: next(cont),
            rope_k: next(rope),
            row_k: next(|kernel| *kernel == Kernel::Op(Op::Concat { axis: 1 }))?,
            set: next(|kernel| *kernel == Kernel::Op(Op::SetRows))?,
        };
        Some((found, launches.len() - rest.len()))
    }
}

/// Elements from one row to the next of `[.., rows, columns]` f32 whose columns are neighbours and whose rows lie at equal distances.
pub(crate) fn row_step(desc: &TensorDesc) -> Option<usize> {
    let (&[.., step, 1], &[.., rows, columns]) = (desc.strides.as_slice(), desc.shape.as_slice()) else {
        return None;
    };
    let outer = match (desc.strides.as_slice(), desc.shape.len()) {
        (_, 2) => true,
        (&[outer, ..], 3) => desc.shape[0] <= 1 || outer == rows * step,
        _ => false,
    };
    (desc.dtype == DType::F32 && outer && step >= columns).then_some(step)
}

impl Rules<'_> {
    /// How many launches are one, if they begin with those of latent attention. All of them but the queries and the cache see only each other's results.
    pub(super) fn latent(&self, launches: &[Launch]) -> Option<usize> {
        let (parts, count) = LatentRows::of(launches)?;
        let desc = |id| self.graph.tensor(id);
        let (&[plain, _], &[y], &[rows, _, slots]) = (
            parts.row_q.inputs.as_slice(),
            parts.row_q.outputs.as_slice(),
            parts.set.inputs.as_slice(),
        ) else {
            return None;
        };
        let (&[x, weight], &[written]) = (parts.norm.inputs.as_slice(), parts.set.outputs.as_slice()) else {
            return None;
        };
        let (&[from_q], &[first, last]) = (parts.part_q.inputs.as_slice(), parts.row_k.inputs.as_slice()) else {
            return None;
        };
        let from_own = parts.own.map_or(x, |own| own.inputs[0]);
        let from_k = parts.part_k.map_or(last, |part| part.inputs[0]);
        let [q, own, k] = [desc(from_q)?, desc(from_own)?, desc(from_k)?];
        let (&[tokens, heads, shared], &[_, rank]) = (q.shape.as_slice(), own.shape.as_slice()) else {
            return None;
        };
        let (kept, size) = (rank + shared, size_of::<f32>());

        // What is turned, by what. Each result is seen by the launch after it alone.
        let turned_q = self.turned(Some(parts.part_q), parts.rope_q, parts.row_q, [tokens, heads, shared])?;
        let turned_k = self.turned(parts.part_k, parts.rope_k, parts.row_k, [tokens, 1, shared])?;
        let alone = (parts.own.is_none_or(|own| self.leads(own, parts.norm, x)))
            && self.leads(parts.norm, parts.row_k, first)
            && self.leads(parts.row_k, parts.set, rows);

        let cache = desc(written)?;
        let fits = turned_q == turned_k
            && alone
            && tokens * heads * rank * shared > 0
            // The last elements of each row of queries.
            && row_step(q).is_some_and(|step| q.byte_offset >= (step - shared) * size)
            // All elements of each row of what is kept.
            && [own, k].iter().all(|part| row_step(part) == Some(kept))
            && (&own.shape[..], &k.shape[..]) == (&[tokens, rank], &[tokens, shared])
            && self.graph.root(from_own) == self.graph.root(from_k)
            && k.byte_offset == own.byte_offset + rank * size
            && [desc(first)?, desc(last)?].map(|part| &part.shape[..]) == [[tokens, rank], [tokens, shared]]
            && desc(plain)?.shape == [tokens, heads, rank]
            && desc(y)?.shape == [tokens, heads, kept]
            && desc(weight)?.shape == [rank]
            && [plain, weight, y].into_iter().all(|id| self.is_plain(id))
            && [Some(slots), turned_q.1.first().copied()].into_iter().flatten().all(|id| self.is_list(id, tokens))
            && cache.is_contiguous()
            && matches!(cache.shape[..], [_, cols] if cols == kept);
        let read = [&[plain, from_q, from_own, weight, slots][..], turned_q.1].concat();
        let changed = [y, self.graph.root(written)?];
        (fits && changed[0] != changed[1] && self.are_own(&[y]) && self.are_apart(&read, &changed)).then_some(count)
    }

    /// The rotary embedding of a part on its way into rows, and what it reads beside it; `None`, and nothing, of a part that is not turned.
    fn turned<'a>(
        &self,
        part: Option<&Launch>,
        rope: Option<&'a Launch>,
        row: &Launch,
        [tokens, heads, shared]: [usize; 3],
    ) -> Option<(Option<Kernel>, &'a [TensorId])> {
        let &[_, last] = row.inputs.as_slice() else { return None };
        let Some(rope) = rope else {
            let leads = part.is_none_or(|part| self.leads(part, row, last));
            return leads.then_some((None, &[]));
        };
        let (Kernel::Op(Op::Rope(op)), [x, by @ ..]) = (rope.kernel, rope.inputs.as_slice()) else {
            return None;
        };
        let &[batch, seq, of_heads, head_dim] = self.graph.tensor(*x)?.shape.as_slice() else {
            return None;
        };
        let fits = op.n_dims > 0
            && op.style.sections().is_none()
            && [batch * seq, of_heads, head_dim] == [tokens, heads, shared]
            && !by.is_empty()
            && self.leads(part?, rope, *x)
            && self.leads(rope, row, last);
        fits.then_some((Some(rope.kernel), by))
    }

    /// Whether a launch's one result, f32 without gaps, is `read` by the other launch and seen by nobody else.
    pub(super) fn leads(&self, launch: &Launch, reader: &Launch, read: TensorId) -> bool {
        let (&[result], &[out]) = (launch.outputs.as_slice(), reader.outputs.as_slice()) else {
            return false;
        };
        let Some(at) = self.uses.writer(out) else { return false };
        let direct = || read == result && self.uses.sole_reader(self.graph, result) == Some(at);
        let renamed = || {
            self.uses
                .renamed(self.graph, read, at)
                .is_some_and(|(_, source)| source == result)
        };
        self.is_plain(result) && (direct() || renamed())
    }
}
