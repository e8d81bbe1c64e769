#pragma once
// The mapping of a kernel to a GPU.

#include "kernel/kernel.h"

namespace coil {

/// What a program (a block of threads) takes as its tile.
enum class TileKind : u8 {
  None,  // `serial`: one program walks all points in order
  Grid,  // a tile of the grid, of rank 1 or 2; loops are scalar
  Rows,  // one point of the grid, lanes along the loops; the tile has an entry for each different
         // row. `chunk` 0: rows are whole tiles, masked; else loops go by chunks of their tile
  Columns,  // tile[0] of a grid axis; loops go by chunks of rows, with an entry for each different
            // row from tile[1] on
};
TileKind tile_kind(const Kernel& kernel);

/// Fills in `mapping` for a GPU and joins axes that the tile needs as one. `units` is the number of
/// programs; tile lengths are powers of two. An Error where there is no mapping. A kernel that is
/// one launch; see launches_gpu.h for those that are several.
///
/// The order of a reduction is that of its tile: position r along the loop goes to slot r % (length
/// of the tile), slots take their elements in rising order and are folded at the end. Along a row
/// by neighbours: slot 2l takes 2l + 1, and so on with what is left. Of columns by halves: slot l
/// takes l + length/2. It depends on the loop's extent and on where the lanes are.
Status map_to_gpu(Kernel& kernel);
/// Maps a kernel of lines whose length is known at the launch only to tiles of lines, and gives the
/// condition under which that leaves few lanes idle. For other kernels nothing, and no mapping.
std::optional<sym::Expr> map_to_lines(Kernel& kernel);
/// The same where loops have one axis each and it is known where the lanes are.
Status map_rows(Kernel& kernel);
Status map_columns(Kernel& kernel, const Axis& lanes);

/// Whether stores that combine give the same bits in any order, by atomic operations that GPUs
/// have.
bool combines_atomically(StoreCombine combine, DType dtype);

/// Warps of a program: from the elements of its tile.
int gpu_warps(const Kernel& kernel);

}  // namespace coil
