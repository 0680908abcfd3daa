//! Order of a tensor's elements in a file, where it is another than that of the tensor which is asked for.

/// Elements of a tensor in a file: the element `[i, j, ...]` of these dimensions lies at `first + i * steps[0] + j * steps[1] + ...`, counted in elements,
/// or in blocks of a format that has these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) first: usize,
    pub(crate) dims: Vec<usize>,
    pub(crate) steps: Vec<usize>,
}

impl Order {
    /// So many rows of `cols` elements from every `of` rows on, in `count` groups, of which the first begins at row `first`.
    pub(crate) fn rows(first: usize, [count, rows, cols]: [usize; 3], of: usize) -> Self {
        Self {
            first: first * cols,
            dims: vec![count, rows, cols],
            steps: vec![of * cols, cols, 1],
        }
    }

    /// Adds the elements, of `size` bytes each, one after the other.
    pub(super) fn gather(&self, bytes: &[u8], size: usize, out: &mut Vec<u8>) {
        gather(bytes, &self.dims, &self.steps, self.first, size, out);
    }
}

fn gather(bytes: &[u8], dims: &[usize], steps: &[usize], at: usize, size: usize, out: &mut Vec<u8>) {
    match (dims, steps) {
        ([count], [1]) => out.extend_from_slice(bytes.get(at * size..(at + count) * size).unwrap_or(&[])),
        ([count, dims @ ..], [step, steps @ ..]) => {
            for index in 0..*count {
                gather(bytes, dims, steps, at + index * step, size, out);
            }
        }
        _ => out.extend_from_slice(bytes.get(at * size..(at + 1) * size).unwrap_or(&[])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(order: &Order) -> Vec<u8> {
        let bytes: Vec<u8> = (0..12).flat_map(|element: u8| [element, 100 + element]).collect();
        let mut out = Vec::new();
        order.gather(&bytes, 2, &mut out);
        out
    }

    #[test]
    fn elements_are_put_in_the_order_of_the_tensor() {
        // A 3 x 4 matrix, of which every second column is a row.
        let columns = Order {
            first: 1,
            dims: vec![2, 3],
            steps: vec![2, 4],
        };
        assert_eq!(gathered(&columns), [1, 101, 5, 105, 9, 109, 3, 103, 7, 107, 11, 111]);
        // The second of every two rows of two elements.
        let rows = Order::rows(1, [3, 1, 2], 2);
        assert_eq!(gathered(&rows), [2, 102, 3, 103, 6, 106, 7, 107, 10, 110, 11, 111]);
    }
}
