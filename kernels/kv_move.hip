// Whole rows of paged caches of keys and values moved as bytes, for every element type: blocks onto other blocks (copy on write, defragmentation),
// and rows of a sequence into memory without gaps. A unit is 16 bytes, or 2 where rows or addresses are no multiple of 16.
#include "include/fault.h"
#include "include/quant.h"
#include "include/team.h"

// Pairs of a launch of kv_copy_blocks.
#define RF_COPY_PAIRS 64
// Units of a block of threads: four to a thread.
#define RF_COPY_UNITS 1024

struct CopyPairs {
    u32 from[RF_COPY_PAIRS], to[RF_COPY_PAIRS];
};

// Block to[i] of each cache becomes block from[i]. No block is in the list twice, so all may be copied at once. grid = (ceil(units / 1024), pairs, 2):
// keys, then values.
template <class Unit> RF_DEVICE void kv_copy_blocks(u8 *k, u8 *v, u64 units, const CopyPairs &pairs) {
    u32 pair = rf_block_y();
    Unit *cache = (Unit *)(rf_block_z() == 0 ? k : v);
    const Unit *from = cache + pairs.from[pair] * units;
    Unit *to = cache + pairs.to[pair] * units;
    u64 first = (u64)rf_block_x() * RF_COPY_UNITS + rf_thread();
    Unit held[4];
#pragma unroll
    for (u32 i = 0; i < 4; ++i)
        if (first + i * RF_ROW_BLOCK < units) held[i] = from[first + i * RF_ROW_BLOCK];
#pragma unroll
    for (u32 i = 0; i < 4; ++i)
        if (first + i * RF_ROW_BLOCK < units) to[first + i * RF_ROW_BLOCK] = held[i];
}

// Row i of each result is that of key first + i: row table[key / block_size] * block_size + key % block_size of the cache. A block number that is not
// below `blocks` is a fault at i, and its rows are not written. 32 lanes to a row; grid = (ceil(rows / 8), 2): keys, then values.
template <class Unit>
RF_DEVICE void kv_gather(const u8 *k, const u8 *v, const u32 *table, u8 *to_k, u8 *to_v, u32 first, u32 rows, u32 units, u32 block_size, u32 blocks,
                         u64 *fault, u32 tag) {
    u32 row = Team32::row(), lane = Team32::lane();
    if (row >= rows) return;
    u32 key = first + row, block = table[key / block_size];
    bool keys = rf_block_y() == 0;
    if (block >= blocks) {
        if (lane == 0 && keys) rf_fault(fault, tag, row, block);
        return;
    }
    const Unit *from = (const Unit *)(keys ? k : v) + ((u64)block * block_size + key % block_size) * units;
    Unit *to = (Unit *)(keys ? to_k : to_v) + (u64)row * units;
    for (u32 i = lane; i < units; i += 32) to[i] = from[i];
}

#define RF_KV_MOVE(name, Unit)                                                                                                          \
    RF_KERNEL(RF_ROW_BLOCK) kv_copy_blocks_##name(u8 *k, u8 *v, u64 units, CopyPairs pairs) { kv_copy_blocks<Unit>(k, v, units, pairs); } \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                             \
    kv_gather_##name(const u8 *k, const u8 *v, const u32 *table, u8 *to_k, u8 *to_v, u32 first, u32 rows, u32 units, u32 block_size,    \
                     u32 blocks, u64 *fault, u32 tag) {                                                                                 \
        kv_gather<Unit>(k, v, table, to_k, to_v, first, rows, units, block_size, blocks, fault, tag);                                   \
    }

RF_KV_MOVE(b16, u4)
RF_KV_MOVE(b2, u16)
