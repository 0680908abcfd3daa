//! Changes that conversion to GGUF makes to a checkpoint, undone: of tensors by their names in GGUF.

use safetensors::Dtype;

use super::conversion::{Source, Tensor};

/// What conversion to GGUF changed.
#[derive(Clone, Copy)]
pub(super) enum Change {
    /// Pairs of rotary embedding are halves, not neighbours.
    Halves,
    /// Weights of norms lack 1.
    NormsLessOne,
    /// `A_log`, and `D` as a vector, under this part of a name; norms of groups as one vector.
    Decay(&'static str),
    /// Convolutions have one more dimension.
    Convolution,
    /// The norm of each head is a tensor.
    HeadsApart,
    /// Each matrix of each expert is a tensor.
    ExpertsApart { of: &'static str, names: [&'static str; 3] },
    /// Matrices of experts are transposed, with gates and the others in turn.
    ExpertsTransposed,
    /// Gates and the others are in one matrix, of experts and of the network beside them.
    GatesJoined,
    /// Keys and values follow from one matrix.
    KeysAndValues,
    /// Query, key, value and gate of a delta net are one matrix.
    JoinedQueries,
    /// The value heads of a key head are neighbours.
    Neighbours,
    /// Such tensors are not there.
    Without(&'static str),
}

/// The elements of a tensor in another order: the element of number `i` is that of number `from(i)`.
fn gathered((dtype, _, bytes): &Tensor, shape: &[usize], from: impl Fn(usize) -> usize) -> Tensor {
    let size = if *dtype == Dtype::F32 { 4 } else { 2 };
    let elements: usize = shape.iter().product();
    let bytes = (0..elements).flat_map(|index| &bytes[from(index) * size..][..size]);
    (*dtype, shape.to_vec(), bytes.copied().collect())
}

/// Tensors one after the other, as a vector.
fn joined(tensors: &[&Tensor]) -> Tensor {
    let bytes: Vec<u8> = tensors.iter().flat_map(|tensor| tensor.2.iter().copied()).collect();
    let elements = tensors.iter().map(|tensor| tensor.1.iter().product::<usize>()).sum();
    (tensors[0].0, vec![elements], bytes)
}

fn mapped((_, shape, bytes): &Tensor, change: impl Fn(f32) -> f32) -> Tensor {
    let values = bytes.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
    let values: Vec<f32> = values.map(change).collect();
    (Dtype::F32, shape.clone(), bytemuck::cast_slice(&values).to_vec())
}

impl Source<'_> {
    /// Replaces all tensors whose names contain a part.
    fn each(&mut self, part: &str, change: impl Fn(&str, &Tensor) -> Vec<(String, Tensor)>) {
        let old = std::mem::take(&mut self.tensors);
        for (name, tensor) in old {
            match name.contains(part) {
                true => self.tensors.extend(change(&name, &tensor)),
                false => _ = self.tensors.insert(name, tensor),
            }
        }
    }

    /// Names of layers that have a tensor.
    fn layers_with(&self, end: &str) -> Vec<String> {
        let names = self.tensors.keys().filter_map(|name| name.strip_suffix(end));
        names.map(str::to_owned).collect()
    }

    fn take(&mut self, name: String) -> Tensor {
        self.tensors.remove(&name).unwrap_or_else(|| panic!("{name}"))
    }

    /// Changes the tensors back.
    pub(super) fn change(&mut self, change: Change) {
        let one = |name: &str, tensor| vec![(name.to_owned(), tensor)];
        match change {
            Change::Without(part) => self.each(part, |_, _| Vec::new()),
            Change::Halves => {
                let (length, rotated) = (self.head_dim(), self.number("rope.dimension_count"));
                for part in [".attn_q.", ".attn_k."] {
                    self.each(part, |name, tensor| {
                        let cols = tensor.1.get(1).copied().unwrap_or(1);
                        let from = |index: usize| {
                            let (row, col) = (index / cols, index % cols);
                            let (head, within) = (row / length, row % length);
                            let pair = 2 * (within % (rotated / 2)) + within / (rotated / 2);
                            let within = if within < rotated { pair } else { within };
                            (head * length + within) * cols + col
                        };
                        one(name, gathered(tensor, &tensor.1, from))
                    });
                }
            }
            Change::NormsLessOne => self.each("norm", |name, tensor| match name.contains("ssm_norm") {
                true => one(name, tensor.clone()),
                false => one(name, mapped(tensor, |w| w - 1.0)),
            }),
            Change::Decay(of) => {
                let flat = |(dtype, shape, bytes): &Tensor| (*dtype, vec![shape.iter().product()], bytes.clone());
                self.each(".ssm_a", |name, tensor| match name.strip_suffix(".ssm_a") {
                    Some(layer) => one(&format!("{layer}{of}A_log"), mapped(&flat(tensor), |a| (-a).ln())),
                    None => one(name, tensor.clone()),
                });
                self.each(".ssm_d", |name, tensor| match name.ends_with(".ssm_d") {
                    true => one(&name.replace(".ssm_d", &format!("{of}D")), flat(tensor)),
                    false => one(name, tensor.clone()),
                });
                self.each(".ssm_norm.", |name, tensor| one(name, flat(tensor)));
            }
            Change::Convolution => {
                for part in [".ssm_conv1d.weight", ".shortconv.conv.weight"] {
                    self.each(part, |name, (dtype, shape, bytes)| {
                        one(name, (*dtype, vec![shape[0], 1, shape[1]], bytes.clone()))
                    });
                }
            }
            Change::HeadsApart => {
                for (part, of) in [(".attn_q_norm.", "q"), (".attn_k_norm.", "k")] {
                    self.each(part, |name, tensor| {
                        let layer = name.split(part).next().expect("a layer");
                        let row = tensor.1[1];
                        let heads = 0..tensor.1[0];
                        let of_head = |head: usize| {
                            let name = format!("{layer}.self_attn.{of}_layernorm.norms.{head}.weight");
                            (name, gathered(tensor, &[row], |index| head * row + index))
                        };
                        heads.map(of_head).collect()
                    });
                }
            }
            Change::ExpertsApart { of, names } => {
                for (kind, own) in ["gate", "up", "down"].into_iter().zip(names) {
                    let part = format!(".ffn_{kind}_exps.weight");
                    self.each(&part, |name, tensor| {
                        let (count, shape) = (tensor.1[0], &tensor.1[1..]);
                        let size: usize = shape.iter().product();
                        let of_expert = |expert: usize| {
                            let name = name.replace(&part, &format!("{of}{expert}.{own}.weight"));
                            (name, gathered(tensor, shape, |index| expert * size + index))
                        };
                        (0..count).map(of_expert).collect()
                    });
                }
            }
            Change::ExpertsTransposed => self.transpose(),
            Change::GatesJoined => self.join_gates(),
            Change::KeysAndValues => {
                for layer in self.layers_with(".attn_k_b.weight") {
                    let key = self.take(format!("{layer}.attn_k_b.weight"));
                    let value = self.take(format!("{layer}.attn_v_b.weight"));
                    let (heads, rank, nope, own) = (key.1[0], key.1[1], key.1[2], value.1[1]);
                    let from = |index: usize| {
                        let (row, col) = (index / rank, index % rank);
                        let (head, row) = (row / (nope + own), row % (nope + own));
                        match row.checked_sub(nope) {
                            None => (head * rank + col) * nope + row,
                            Some(row) => heads * rank * nope + (head * own + row) * rank + col,
                        }
                    };
                    let both = gathered(&joined(&[&key, &value]), &[heads * (nope + own), rank], from);
                    self.tensors.insert(format!("{layer}.attn_kv_b.weight"), both);
                }
            }
            Change::JoinedQueries => {
                let (heads, keys, dim) = self.delta_net();
                let each = heads / keys * dim;
                for layer in self.layers_with(".attn_qkv.weight") {
                    let all = self.take(format!("{layer}.attn_qkv.weight"));
                    let gate = self.take(format!("{layer}.attn_gate.weight"));
                    let width = all.1[1];
                    let from = |index: usize| {
                        let (row, col) = (index / width, index % width);
                        let (key, row) = (row / (2 * dim + 2 * each), row % (2 * dim + 2 * each));
                        let row = match row {
                            row if row < dim => key * dim + row,
                            row if row < 2 * dim => (keys + key) * dim + row - dim,
                            row if row < 2 * dim + each => 2 * keys * dim + key * each + row - 2 * dim,
                            row => 2 * keys * dim + heads * dim + key * each + row - 2 * dim - each,
                        };
                        row * width + col
                    };
                    let shape = [keys * (2 * dim + 2 * each), width];
                    let whole = gathered(&joined(&[&all, &gate]), &shape, from);
                    self.tensors
                        .insert(format!("{layer}.linear_attn.in_proj_qkvz.weight"), whole);
                }
            }
            Change::Neighbours => self.make_neighbours(),
        }
    }

    /// Heads of values, heads of keys and their length.
    fn delta_net(&self) -> (usize, usize, usize) {
        (
            self.number("ssm.time_step_rank"),
            self.number("ssm.group_count"),
            self.number("ssm.state_size"),
        )
    }

    fn transpose(&mut self) {
        for layer in self.layers_with(".ffn_gate_exps.weight") {
            let names = |kind| {
                (
                    format!("{layer}.ffn_{kind}_exps.weight"),
                    format!("{layer}.ffn_{kind}_exps.bias"),
                )
            };
            let of = |source: &mut Self, kind| {
                let (weight, bias) = names(kind);
                (source.take(weight), source.take(bias))
            };
            let ((gate, gate_bias), (up, up_bias)) = (of(self, "gate"), of(self, "up"));
            let (down, down_bias) = of(self, "down");
            let (count, rows, cols) = (gate.1[0], gate.1[1], gate.1[2]);
            let size = count * rows * cols;
            let from = |index: usize| {
                let (expert, rest) = (index / (2 * rows * cols), index % (2 * rows * cols));
                let (col, row) = (rest / (2 * rows), rest % (2 * rows));
                row % 2 * size + (expert * rows + row / 2) * cols + col
            };
            let both = gathered(&joined(&[&gate, &up]), &[count, cols, 2 * rows], from);
            let from = |index: usize| index % 2 * count * rows + index / 2;
            let biases = gathered(&joined(&[&gate_bias, &up_bias]), &[count, 2 * rows], from);
            let from = |index: usize| {
                let (expert, rest) = (index / (rows * cols), index % (rows * cols));
                (expert * cols + rest % cols) * rows + rest / cols
            };
            let down = gathered(&down, &[count, rows, cols], from);
            let experts = format!("{layer}.mlp.experts.");
            self.tensors.extend([
                (format!("{experts}gate_up_proj"), both),
                (format!("{experts}gate_up_proj_bias"), biases),
                (format!("{experts}down_proj"), down),
                (format!("{experts}down_proj_bias"), down_bias),
            ]);
        }
    }

    fn join_gates(&mut self) {
        for (kind, of) in [("exps", "block_sparse_moe"), ("shexp", "shared_mlp")] {
            for layer in self.layers_with(&format!(".ffn_gate_{kind}.weight")) {
                let of_kind = |part| format!("{layer}.ffn_{part}_{kind}.weight");
                let (gate, up) = (self.take(of_kind("gate")), self.take(of_kind("up")));
                let down = self.take(of_kind("down"));
                let mut shape = gate.1.clone();
                let at = shape.len() - 2;
                let one = shape[at] * shape[at + 1];
                let size: usize = shape.iter().product();
                shape[at] *= 2;
                let from = |index: usize| index / one % 2 * size + index / (2 * one) * one + index % one;
                let both = gathered(&joined(&[&gate, &up]), &shape, from);
                self.tensors.insert(format!("{layer}.{of}.input_linear.weight"), both);
                self.tensors.insert(format!("{layer}.{of}.output_linear.weight"), down);
            }
        }
    }

    fn make_neighbours(&mut self) {
        let (heads, keys, dim) = self.delta_net();
        let each = heads / keys;
        // The head of number `i` of a checkpoint, in GGUF.
        let head = |index: usize| index % each * keys + index / each;
        for (part, first, of, is_last) in [
            (".attn_qkv.", 2 * keys * dim, dim, false),
            (".ssm_conv1d.", 2 * keys * dim, dim, false),
            (".attn_gate.", 0, dim, false),
            (".ssm_beta.", 0, 1, false),
            (".ssm_alpha.", 0, 1, false),
            (".ssm_a", 0, 1, false),
            (".ssm_dt.", 0, 1, false),
            (".ssm_out.", 0, dim, true),
        ] {
            self.each(part, |name, tensor| {
                if part == ".ssm_a" && !name.ends_with(part) {
                    return vec![(name.to_owned(), tensor.clone())];
                }
                let moved = |at: usize| match at.checked_sub(first) {
                    None => at,
                    Some(at) => first + head(at / of) * of + at % of,
                };
                let cols = tensor.1.get(1).copied().unwrap_or(1);
                let from = |index: usize| match is_last {
                    true => index / cols * cols + moved(index % cols),
                    false => moved(index / cols) * cols + index % cols,
                };
                vec![(name.to_owned(), gathered(tensor, &tensor.1, from))]
            });
        }
    }
}
