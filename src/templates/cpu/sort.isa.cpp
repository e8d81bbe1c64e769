// Sort and topk. Values become unsigned keys whose order is the wanted one (NaN largest and all
// alike, -0 like 0, inverted for descending), so one stable sort of integers serves every type.

#include "templates/cpu/sort.h"

#include "templates/cpu/isa.h"

#include "templates/cpu/entries.inc"

namespace coil::templates::COIL_ISA {

namespace {

constexpr i64 kInsertionSortLength = 48;
constexpr i64 kInsertionTopk = 64;

template <class Key>
struct Item {
  Key key;
  i64 index;
};

/// The key of a value in ascending order, for what load1 gives: f32, f64, an integer or bool.
template <class V>
auto key_of(V value) {
  if constexpr (kernel::kIsFloat<V>) {
    using U = kernel::uint_like<V>;
    constexpr U top = U(1) << (8 * sizeof(U) - 1);
    if (value != value) return U(~U(0));
    if (value == V(0)) return top;
    const U bits = kernel::bitcast<U>(value);
    return U(bits & top ? ~bits : bits | top);
  } else if constexpr (sizeof(V) == 8) {
    return kernel::kIsSigned<V> ? u64(value) ^ (u64(1) << 63) : u64(value);
  } else if constexpr (kernel::kIsSigned<V>) {
    return u32(i32(value)) ^ 0x80000000u;
  } else {
    return u32(value);
  }
}

template <class Key>
void insertion_sort(Item<Key>* items, i64 n) {
  for (i64 i = 1; i < n; ++i) {
    const Item<Key> item = items[i];
    i64 j = i;
    for (; j > 0 && item.key < items[j - 1].key; --j) items[j] = items[j - 1];
    items[j] = item;
  }
}

/// Byte by byte from the lowest; bytes that are equal everywhere are skipped. The result is where
/// the last pass left it: in `items` or in `other`.
template <class Key>
Item<Key>* radix_sort(Item<Key>* items, Item<Key>* other, i64 n) {
  for (unsigned shift = 0; shift < 8 * sizeof(Key); shift += 8) {
    i64 start[256] = {};
    for (i64 i = 0; i < n; ++i) ++start[items[i].key >> shift & 255];
    if (start[items[0].key >> shift & 255] == n) continue;
    i64 sum = 0;
    for (i64& s : start) {
      const i64 count = s;
      s = sum;
      sum += count;
    }
    for (i64 i = 0; i < n; ++i) other[start[items[i].key >> shift & 255]++] = items[i];
    Item<Key>* swap = items;
    items = other;
    other = swap;
  }
  return items;
}

template <class Key>
Item<Key>* sort_items(Item<Key>* items, Item<Key>* other, i64 n) {
  if (n > kInsertionSortLength) return radix_sort(items, other, n);
  insertion_sort(items, n);
  return items;
}

template <class T>
using KeyOf = decltype(key_of(kernel::load1(static_cast<const T*>(nullptr))));

template <class T>
struct RowSort {
  using Key = KeyOf<T>;
  const SortArgs& s;
  i64 k;
  i64 row;
  Item<Key>* items;

  const T* in() const { return static_cast<const T*>(s.in) + row * s.in_row_stride; }
  Key key(i64 i) const {
    const Key ascending = key_of(kernel::load1(in() + i * s.in_stride));
    return s.descending ? Key(~ascending) : ascending;
  }

  const Item<Key>* sort_all() const {
    for (i64 i = 0; i < s.n; ++i) items[i] = {key(i), i};
    return sort_items(items, items + s.n, s.n);
  }
  /// Keeps the k first so far in order; equal keys stay behind those that came before.
  const Item<Key>* keep_first() const {
    i64 kept = 0;
    for (i64 i = 0; i < s.n; ++i) {
      const Key here = key(i);
      if (kept == k && !(here < items[k - 1].key)) continue;
      i64 j = kept < k ? kept++ : k - 1;
      for (; j > 0 && here < items[j - 1].key; --j) items[j] = items[j - 1];
      items[j] = {here, i};
    }
    return items;
  }

  void run() const {
    if (s.n == 0 || k == 0) return;
    const Item<Key>* sorted = k < s.n && k <= kInsertionTopk ? keep_first() : sort_all();
    T* values = static_cast<T*>(s.values);
    for (i64 i = 0; i < k; ++i) {
      if (values) {
        T* to = values + row * s.values_row_stride + i * s.values_stride;
        kernel::put_raw(to, kernel::raw_at(in() + sorted[i].index * s.in_stride));
      }
      if (s.indices) {
        s.indices[row * s.indices_row_stride + i * s.indices_stride] = sorted[i].index;
      }
    }
  }
};

template <class F>
void with_sortable(DType dtype, F f) {
  switch (dtype) {
    COIL_FLOAT_CASES(f)
    COIL_INT_CASES(f)
    case DType::b8: f(TypeTag<kernel::b8>{}); break;
    case DType::c32:
    case DType::c64:
    case DType::c128: fail_unsupported(dtype);
  }
}

i64 worker_bytes(const SortArgs& s) {
  return round_up(2 * larger(s.n, 1) * i64(sizeof(Item<u64>)), kCacheLine);
}

void run_sort(const SortArgs& s, i64 k, runtime::ThreadPool& pool, void* scratch) {
  with_sortable(s.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each_task(pool, s.rows, [&](i64 row, int worker) {
      char* memory = static_cast<char*>(scratch) + worker * worker_bytes(s);
      RowSort<T>{s, k, row, reinterpret_cast<Item<KeyOf<T>>*>(memory)}.run();
    });
  });
}

}  // namespace

void sort(const SortArgs& args, runtime::ThreadPool& pool, void* scratch) {
  run_sort(args, args.n, pool, scratch);
}
i64 sort_scratch_bytes(const SortArgs& args, int threads) { return worker_bytes(args) * threads; }

void topk(const TopkArgs& args, runtime::ThreadPool& pool, void* scratch) {
  run_sort(args.row, args.k, pool, scratch);
}
i64 topk_scratch_bytes(const TopkArgs& args, int threads) {
  return worker_bytes(args.row) * threads;
}

}  // namespace coil::templates::COIL_ISA
