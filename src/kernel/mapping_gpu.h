#pragma once
// The mapping of a kernel to a GPU.

#include "kernel/kernel.h"

namespace coil {

/// Fills in `mapping` for a GPU and joins axes that the tile needs as one. A program is a block of
/// threads:
///   tile empty                one program walks all points in order (`serial`)
///   tile along the loops' row a program has one point of the grid; `chunk` 0: the row is one tile,
///   masked;
///                             else the loops go by chunks of the tile's length
///   tile along grid axes      a program has a tile of the grid (rank 1 or 2); its loops are scalar
/// `units` is the number of programs. Tile lengths are powers of two. An Error where there is no
/// mapping.
Status map_to_gpu(Kernel& kernel);

/// Whether stores that combine give the same bits in any order, by atomic operations that GPUs
/// have.
bool combines_atomically(StoreCombine combine, DType dtype);

/// Warps of a program: from the elements of its tile.
int gpu_warps(const Mapping& mapping);

}  // namespace coil
