// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// A libnccl.so.2 that only tells its version; FAKE_NCCL_VERSION 0 = it fails to.
extern "C" int ncclGetVersion(int* version) {
  if (FAKE_NCCL_VERSION == 0) return 3;  // ncclInternalError
  *version = FAKE_NCCL_VERSION;
  return 0;
}
