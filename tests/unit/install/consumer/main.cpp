// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include <artune/artune.h>

#include <cstdio>

int main() {
  int version = 0;
  if (artuneGetVersion(&version) != artuneSuccess) return 1;
  std::printf("artune %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
  return 0;
}
