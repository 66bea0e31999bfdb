//===- ReshardMemoryTest.cpp - Buffers of sequences, by hand --------------===//

#include "shardc/Reshard/ReshardMemory.h"
#include <gtest/gtest.h>

using namespace shardc;

namespace {

// The source stays: beside its 16 B, the gathered 32 B and what becomes of
// them.
TEST(ReshardMemoryTest, TwoArraysBesideTheSource) {
  ReshardMemory memory;
  memory.add(CollectiveKind::AllGather, 16, 32);
  EXPECT_EQ(memory.extraBytes(), 32);
  memory.add(CollectiveKind::AllToAll, 32, 32);
  EXPECT_EQ(memory.extraBytes(), 64);
  EXPECT_EQ(memory.madeBytes, 32);
  // Where the source goes away, 64 B are alive at once, of which 32 B stay.
  EXPECT_EQ(memory.storeExtraBytes(), 32);
}

// A slice of what stays is no array; a slice of what was gathered is one.
TEST(ReshardMemoryTest, SlicesAreViewsOfTheSource) {
  ReshardMemory memory;
  memory.add(CollectiveKind::AllSlice, 64, 32);
  EXPECT_TRUE(memory.isView());
  EXPECT_EQ(memory.extraBytes(), 0);
  memory.add(CollectiveKind::AllGather, 32, 64);
  EXPECT_FALSE(memory.isView());
  EXPECT_EQ(memory.extraBytes(), 64);
  memory.add(CollectiveKind::AllSlice, 64, 16);
  EXPECT_EQ(memory.extraBytes(), 80);
}

// all_reduce works in place, but not on what stays as it is.
TEST(ReshardMemoryTest, AllReduceWorksInPlace) {
  ReshardMemory alone;
  alone.add(CollectiveKind::AllReduce, 32, 32);
  EXPECT_EQ(alone.extraBytes(), 32);
  EXPECT_EQ(alone.storeExtraBytes(), 0);
  ReshardMemory later;
  later.add(CollectiveKind::AllGather, 32, 64);
  later.add(CollectiveKind::AllReduce, 64, 64);
  EXPECT_EQ(later.extraBytes(), 64);
}

} // namespace
