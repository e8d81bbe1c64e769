// Ids, tables and side tables.
#include "base/ids.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <type_traits>

namespace coil {
namespace {

struct CatTag;
struct DogTag;
using CatId = Id<CatTag>;
using DogId = Id<DogTag>;

static_assert(!std::is_convertible_v<CatId, DogId>);
static_assert(!std::is_convertible_v<std::size_t, CatId>);
static_assert(sizeof(CatId) == 4);

TEST(Ids, DefaultNamesNothing) {
  EXPECT_FALSE(CatId().valid());
  EXPECT_TRUE(CatId(0).valid());
  EXPECT_LT(CatId(1), CatId(2));
}

TEST(Ids, TableHandsOutIdsInOrder) {
  Table<CatId, std::string> table;
  EXPECT_TRUE(table.empty());
  const CatId tom = table.add("tom");
  const CatId felix = table.add("felix");
  EXPECT_EQ(tom, CatId(0));
  EXPECT_EQ(felix, CatId(1));
  table[tom] += "!";
  std::string all;
  for (const CatId id : table.ids()) all += table[id] + " ";
  EXPECT_EQ(all, "tom! felix ");
}

TEST(Ids, TableRefusesForeignIndices) {
  Table<CatId, int> table;
  EXPECT_THROW(table[CatId(0)], std::out_of_range);
  EXPECT_THROW(table[CatId()], std::out_of_range);
}

TEST(Ids, CopyOfATableIsIndependent) {
  Table<CatId, int> a;
  const CatId id = a.add(1);
  Table<CatId, int> b = a;
  b[id] = 2;
  EXPECT_EQ(a[id], 1);
}

TEST(Ids, SideReadsUnsetEntriesAsFill) {
  Side<CatId, int> side(2, 7);
  EXPECT_EQ(side.get(CatId(1)), 7);
  EXPECT_EQ(side.get(CatId(9)), 7);
  side[CatId(4)] = 1;
  EXPECT_EQ(side.get(CatId(4)), 1);
  EXPECT_EQ(side.get(CatId(3)), 7);
}

}  // namespace
}  // namespace coil
