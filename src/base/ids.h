#pragma once
// Typed indices and the two kinds of table that use them.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace coil {

using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// A u32 that can index only tables of its own Tag. The default value names nothing.
template <class Tag>
struct Id {
  u32 index = ~u32{0};

  constexpr Id() = default;
  constexpr explicit Id(std::size_t i) : index(static_cast<u32>(i)) {}
  constexpr bool valid() const { return index != ~u32{0}; }
  constexpr auto operator<=>(const Id&) const = default;
};

/// Owns the objects that an Id names. Ids are handed out in order and never reused.
template <class I, class T>
class Table {
 public:
  I add(T value) {
    items_.push_back(std::move(value));
    return I(items_.size() - 1);
  }
  T& operator[](I id) { return items_.at(id.index); }
  const T& operator[](I id) const { return items_.at(id.index); }
  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

  /// The ids of all objects, in order: `for (BufferId b : buffers.ids())`.
  class Ids {
   public:
    struct Iterator {
      u32 at;
      I operator*() const { return I(at); }
      Iterator& operator++() {
        ++at;
        return *this;
      }
      bool operator!=(const Iterator& o) const { return at != o.at; }
    };
    explicit Ids(std::size_t n) : n_(static_cast<u32>(n)) {}
    Iterator begin() const { return {0}; }
    Iterator end() const { return {n_}; }

   private:
    u32 n_;
  };
  Ids ids() const { return Ids(items_.size()); }

 private:
  std::vector<T> items_;
};

/// Annotates the objects of a Table from outside; entries that were never set read as `T{}`.
template <class I, class T>
class Side {
 public:
  Side() = default;
  explicit Side(std::size_t n, T fill = T{}) : items_(n, Cell{fill}), fill_{fill} {}

  T& operator[](I id) {
    if (id.index >= items_.size()) items_.resize(id.index + 1, fill_);
    return items_[id.index].value;
  }
  const T& get(I id) const {
    return id.index < items_.size() ? items_[id.index].value : fill_.value;
  }

 private:
  struct Cell {  // keeps std::vector<bool> out
    T value{};
  };
  std::vector<Cell> items_;
  Cell fill_;
};

}  // namespace coil
