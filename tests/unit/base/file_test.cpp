// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace artune {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class File : public testing::Test {
 protected:
  File() {
    std::string name = (std::filesystem::temp_directory_path() / "artune-file-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~File() override {
    ::chmod(root_.c_str(), 0700);
    std::filesystem::remove_all(root_);
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(root_), std::filesystem::directory_iterator()));
  }
  std::string root_;
};

TEST_F(File, WritesAndReadsBack) {
  const std::string path = root_ + "/document.json";
  const std::string text(200000, 'x');
  ASSERT_TRUE(static_cast<bool>(write_file_atomically(path, text)));
  EXPECT_EQ(*read_file(path), text);
  ASSERT_TRUE(static_cast<bool>(write_file_atomically(path, "")));
  EXPECT_EQ(*read_file(path), "");
  EXPECT_EQ(entries(), 1U) << "a temporary file was left";
}

TEST_F(File, IsAsReadableAsTheUmaskSays) {
  const std::string path = root_ + "/document.json";
  const mode_t before = ::umask(022);
  ASSERT_TRUE(static_cast<bool>(write_file_atomically(path, "{}")));
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0644U);
}

TEST_F(File, ReplacesAsAWhole) {
  const std::string path = root_ + "/document.json";
  ASSERT_TRUE(static_cast<bool>(write_file_atomically(path, "old")));
  std::ifstream reader(path);  // opened before the change: must go on seeing the old document
  ASSERT_TRUE(static_cast<bool>(write_file_atomically(path, "new and longer")));
  std::string seen;
  std::getline(reader, seen);
  EXPECT_EQ(seen, "old");
  EXPECT_EQ(*read_file(path), "new and longer");
}

// A full disk, played by the limit on the size of a file.
TEST_F(File, AFailedWriteLeavesTheOldDocument) {
  const std::string path = root_ + "/document.json";
  ASSERT_TRUE(static_cast<bool>(write_file_atomically(path, "old")));
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{4096, limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = write_file_atomically(path, std::string(100000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(static_cast<bool>(status));
  EXPECT_EQ(status.error().reason, Reason::unwritable_output);
  EXPECT_THAT(status.error().message, HasSubstr("File too large"));
  EXPECT_EQ(*read_file(path), "old");
  EXPECT_EQ(entries(), 1U) << "a temporary file was left";
}

TEST_F(File, UnwritablePlacesAreNamed) {
  std::ofstream(root_ + "/plain") << "x";
  for (const std::string& path : {root_ + "/missing/document.json", root_ + "/plain/document.json"}) {
    for (const Status& status : {check_writable(path), write_file_atomically(path, "{}")}) {
      ASSERT_FALSE(static_cast<bool>(status)) << path;
      EXPECT_EQ(status.error().reason, Reason::unwritable_output);
      EXPECT_THAT(status.error().message, StartsWith("can't write " + path + ": "));
      EXPECT_THAT(status.error().message, HasSubstr("-o"));
    }
  }
  EXPECT_THAT(check_writable(root_).error().message, HasSubstr("Is a directory"));
  EXPECT_FALSE(static_cast<bool>(write_file_atomically(root_, "{}")));
}

TEST_F(File, ReadOnlyFolder) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  ::chmod(root_.c_str(), 0500);
  EXPECT_THAT(check_writable(root_ + "/document.json").error().message, HasSubstr("Permission denied"));
}

TEST_F(File, CheckingLeavesNothingBehind) {
  EXPECT_TRUE(static_cast<bool>(check_writable(root_ + "/document.json")));
  EXPECT_EQ(entries(), 0U);
  ASSERT_TRUE(static_cast<bool>(write_file_atomically(root_ + "/document.json", "kept")));
  EXPECT_TRUE(static_cast<bool>(check_writable(root_ + "/document.json")));
  EXPECT_EQ(*read_file(root_ + "/document.json"), "kept");
}

TEST_F(File, UnreadableFilesSayWhy) {
  EXPECT_EQ(read_file(root_ + "/missing").error().message, "can't read " + root_ + "/missing: No such file or directory");
  EXPECT_EQ(read_file(root_).error().message, "can't read " + root_ + ": Is a directory");
  EXPECT_EQ(read_file(root_).error().reason, Reason::unreadable_input);
}

}  // namespace
}  // namespace artune
