#include <gtest/gtest.h>
#include <minizip/zip.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "import/archive.h"
#include "import/pt2.h"

namespace coil {
namespace {

Bytes bytes_of(const std::string& text) {
  auto owner = std::make_shared<std::vector<std::byte>>(text.size());
  if (!text.empty()) std::memcpy(owner->data(), text.data(), text.size());
  return Bytes{owner->data(), static_cast<i64>(text.size()), owner};
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct Member {
  std::string name, content;
  int method = 0;  // 8: deflated
};

std::string zip_of(const std::vector<Member>& members) {
  const std::string path =
      (std::filesystem::temp_directory_path() / str("coil_zip_{}", ::getpid())).string();
  zipFile zip = zipOpen64(path.c_str(), APPEND_STATUS_CREATE);
  EXPECT_NE(zip, nullptr);
  for (const Member& m : members) {
    zip_fileinfo info{};
    zipOpenNewFileInZip64(zip, m.name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr, m.method, 9,
                          0);
    zipWriteInFileInZip(zip, m.content.data(), static_cast<unsigned>(m.content.size()));
    zipCloseFileInZip(zip);
  }
  zipClose(zip, nullptr);
  const std::string bytes = read_file(path);
  std::filesystem::remove(path);
  return bytes;
}

/// Overwrites the little-endian u32 at `at` bytes after the first directory header.
std::string with_directory_field(std::string zip, std::size_t at, u32 value) {
  const std::size_t header = zip.find("PK\x01\x02");
  EXPECT_NE(header, std::string::npos);
  for (int i = 0; i < 4; ++i) zip[header + at + i] = static_cast<char>(value >> (8 * i));
  return zip;
}

constexpr std::size_t kPackedField = 20, kSizeField = 24, kOffsetField = 42;

TEST(ImportArchive, StoredEntriesAreViewsAndDeflatedOnesAreInflated) {
  const std::string long_text(5000, 'x');
  const Bytes file = bytes_of(zip_of({{"a/stored", "hello", 0}, {"a/packed", long_text, 8}}));
  const auto archive = Archive::open(file, "t.zip");
  ASSERT_TRUE(archive.ok()) << archive.error().message;
  ASSERT_EQ(archive->entries().size(), 2u);
  const ArchiveEntry* stored = archive->find("a/stored");
  ASSERT_NE(stored, nullptr);
  const auto view = archive->read(*stored, Checksum::Verify);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->text(), "hello");
  EXPECT_EQ(view->data, file.data + stored->offset);
  const auto packed = archive->read(*archive->find("a/packed"), Checksum::Verify);
  ASSERT_TRUE(packed.ok()) << packed.error().message;
  EXPECT_EQ(packed->text(), long_text);
  EXPECT_FALSE(archive->read(*archive->find("a/packed"), Checksum::Verify, 4999).ok());
  EXPECT_EQ(archive->find("a/none"), nullptr);
}

TEST(ImportArchive, LyingSizesAndOffsetsAreErrors) {
  const std::string packed = zip_of({{"p", std::string(5000, 'x'), 8}});
  // A deflate bomb by its stated size is refused before memory is taken.
  const auto bomb =
      Archive::open(bytes_of(with_directory_field(packed, kSizeField, 0x3ffffff0)), "t");
  EXPECT_FALSE(bomb.ok() && bomb->read(*bomb->find("p"), Checksum::Verify).ok());
  const std::string stored = zip_of({{"s", "hello", 0}});
  for (u32 value : {6u, 0x7fffffffu, 0xfffffffeu}) {
    EXPECT_FALSE(
        Archive::open(bytes_of(with_directory_field(stored, kPackedField, value)), "t").ok());
    EXPECT_FALSE(
        Archive::open(bytes_of(with_directory_field(stored, kOffsetField, value)), "t").ok());
  }
}

TEST(ImportArchive, ChecksumsAreCompared) {
  std::string zip = zip_of({{"s", "hello", 0}});
  zip[zip.find("hello")] = 'j';
  const auto archive = Archive::open(bytes_of(zip), "t");
  ASSERT_TRUE(archive.ok());
  EXPECT_FALSE(archive->read(archive->entries()[0], Checksum::Verify).ok());
  EXPECT_TRUE(archive->read(archive->entries()[0], Checksum::Skip).ok());
}

TEST(ImportArchive, NamesMustDiffer) {
  EXPECT_FALSE(Archive::open(bytes_of(zip_of({{"s", "a", 0}, {"s", "b", 0}})), "t").ok());
}

TEST(ImportArchive, TruncatedProgramsAreErrors) {
  const std::string whole = read_file(str("{}/tests/fixtures/2.15.0/counter.pt2", COIL_SOURCE_DIR));
  ASSERT_GT(whole.size(), 1000u);
  for (std::size_t size = 0; size < whole.size(); size += whole.size() / 97)
    EXPECT_FALSE(import_pt2(bytes_of(whole.substr(0, size)), "t.pt2", nullptr).ok()) << size;
}

TEST(ImportArchive, DamagedProgramsNeverCrash) {
  const std::string whole = read_file(str("{}/tests/fixtures/2.15.0/branch.pt2", COIL_SOURCE_DIR));
  std::mt19937 random(7);
  int errors = 0;
  for (int round = 0; round < 300; ++round) {
    std::string damaged = whole;
    for (int i = 0; i < 8; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto program = import_pt2(bytes_of(damaged), "t.pt2", nullptr);
    if (!program.ok()) {
      ++errors;
      EXPECT_FALSE(program.error().message.empty());
    }
  }
  EXPECT_GT(errors, 100);
}

TEST(ImportArchive, OtherFilesAreNamed) {
  const auto text = import_pt2(bytes_of("not a zip"), "t.pt2", nullptr);
  ASSERT_FALSE(text.ok());
  EXPECT_NE(text.error().message.find("not a readable zip"), std::string::npos);
  const auto other = import_pt2(bytes_of(zip_of({{"x/readme", "hi", 0}})), "t.pt2", nullptr);
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("no exported program"), std::string::npos);
  const auto old = import_pt2(bytes_of(zip_of({{"serialized_exported_program.json", "{}", 0}})),
                              "t.pt2", nullptr);
  ASSERT_FALSE(old.ok());
  EXPECT_NE(old.error().message.find("torch 2.9 and newer"), std::string::npos);
  const auto pickled = import_pt2(
      bytes_of(zip_of({{"m/models/model.json", "{}", 0}, {"m/data/weights/model.pt", "x", 0}})),
      "t.pt2", nullptr);
  ASSERT_FALSE(pickled.ok());
  EXPECT_NE(pickled.error().message.find("torch 2.8"), std::string::npos);
}

}  // namespace
}  // namespace coil
