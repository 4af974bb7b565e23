/* SPDX-FileCopyrightText: the ar-tune authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * libartune: all-reduce by the tuning profile of this machine. A C interface in the manner of NCCL.
 *
 *   artuneComm_t comms[2];
 *   int devices[2] = {0, 1};
 *   artuneCommInitAll(comms, 2, devices, NULL);           // finds the profile that `ar-tune tune` wrote
 *   artuneGroupStart();
 *   for (int r = 0; r < 2; ++r) artuneAllReduce(in[r], out[r], count, artuneBfloat16, artuneSum, comms[r], streams[r]);
 *   artuneGroupEnd();
 *   for (int r = 0; r < 2; ++r) artuneCommDestroy(comms[r]);
 *
 * Errors are return codes; artuneGetLastError() has the sentence. The library never prints (see artuneConfig_t.log and
 * ARTUNE_LOG), never exits and never throws.
 *
 * States of a communicator, and what is legal in each:
 *   ready       everything
 *   error       after a timeout, a CUDA or an NCCL error on any rank: AllReduce returns artuneCommError; outputs of calls
 *               that were under way hold NaN. GetAsyncError, GetLastError, Abort, Destroy are legal.
 *   aborted     after artuneCommAbort on any rank: only Destroy
 *   destroyed   the handle is gone
 * A handle belongs to one rank. Different ranks may be used from different threads; one rank from one thread at a time.
 */
#ifndef ARTUNE_ARTUNE_H
#define ARTUNE_ARTUNE_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#if defined(__GNUC__)
#define ARTUNE_API __attribute__((visibility("default")))
#else
#define ARTUNE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct artuneComm* artuneComm_t;

typedef enum {
  artuneSuccess = 0,
  artuneCudaError = 1,          /* a CUDA call failed; the sentence names it */
  artuneSystemError = 2,        /* out of memory, a file, a thread */
  artuneInternalError = 3,      /* a fault of ours */
  artuneInvalidArgument = 4,    /* the sentence names the argument */
  artuneInvalidUsage = 5,       /* legal values in an illegal state or order */
  artuneUnavailable = 6,        /* no path can serve this: the sentence says why for each */
  artuneCommError = 7,          /* the communicator is in error (a rank never came, a device failed) */
  artuneProfileError = 8        /* a profile that was named explicitly can't be used */
} artuneResult_t;

/* Values are NCCL's. Others of NCCL's are reserved and refused with artuneInvalidArgument. */
typedef enum { artuneFloat16 = 6, artuneFloat32 = 7, artuneBfloat16 = 9 } artuneDataType_t;
typedef enum { artuneSum = 0 } artuneRedOp_t;

/* What runs beside the reductions: which of the profile's tables is used. */
typedef enum { artuneLoadIdle = 0, artuneLoadOverlap = 1 } artuneLoad_t;

/* level: 0 = note, 1 = warning. `message`: one line, without newline, valid during the call. Called from the thread that
 * makes the communicator, never from artuneAllReduce. */
typedef void (*artuneLogFunction_t)(int level, const char* message, void* user);

/* Zero means "default" in every field. Later versions add fields at the end: set `size` to sizeof(artuneConfig_t). */
typedef struct {
  size_t size;
  size_t maxMemoryBytes;        /* device memory per GPU over all ranks on it; default 64 MiB */
  double timeoutSeconds;        /* of one wait for a peer inside a kernel; default 600, negative = no limit */
  const char* profile;          /* a profile file; default: ARTUNE_PROFILE, then the configuration folders */
  const char* ncclLibrary;      /* default: ARTUNE_NCCL_LIB, then the loader's search */
  artuneLogFunction_t log;      /* default: silent */
  void* logUser;
  int bf16Wire;                 /* 1: float32 may go over the links as bfloat16 where the profile says that it pays, half the
                                   bytes and 8 bits of every contribution (classes wire-bf16-in, wire-bf16-in-out); needs a
                                   profile made with `ar-tune tune --dtype f32 --wire native,bf16`; the same on every rank */
  artuneLoad_t load;            /* artuneLoadOverlap: compute runs beside; tables of `ar-tune tune --overlap` */
} artuneConfig_t;

#define ARTUNE_CONFIG_INITIALIZER { sizeof(artuneConfig_t), 0, 0, NULL, NULL, NULL, NULL, 0, artuneLoadIdle }

/* major * 10000 + minor * 100 + patch */
ARTUNE_API artuneResult_t artuneGetVersion(int* version);
/* A fixed phrase for the code. */
ARTUNE_API const char* artuneGetErrorString(artuneResult_t result);
/* The sentence of this thread's last failure; "" when there was none. Valid until the next failure on this thread. */
ARTUNE_API const char* artuneGetLastError(void);

/* Makes the communicators of all `nranks` (2..16) ranks of one process. `devices`: CUDA ordinal of each rank, NULL = 0, 1,
 * …; a device may repeat, its ranks share it. A missing, foreign or simulated profile is no error unless it was named by
 * config->profile: one log line says so, and NCCL serves everything (without NCCL, host memory does).
 * Every pair of GPUs that the profile sends peer-to-peer traffic over is tested first; a failed test switches p2p off. */
ARTUNE_API artuneResult_t artuneCommInitAll(artuneComm_t* comms, int nranks, const int* devices, const artuneConfig_t* config);

/* Sums `count` elements over all ranks into `recvbuff` of every rank, asynchronously on `stream`. Buffers: device memory
 * of the rank's GPU, element-aligned, disjoint or equal. Every rank calls with the same count and type, in the same
 * order. count 0 does nothing. May be captured into CUDA graphs (one a rank, or all ranks in one).
 * From one thread, all ranks' calls stand in a group; so they must where NCCL may serve them.
 * Numerics: fp32 accumulation in rank order, rounded once, the same bits on all ranks — unless NCCL serves the size,
 * or the config allowed a bf16 wire. artuneExplain() says which. */
ARTUNE_API artuneResult_t artuneAllReduce(const void* sendbuff, void* recvbuff, size_t count, artuneDataType_t datatype,
                                          artuneRedOp_t op, artuneComm_t comm, cudaStream_t stream);

/* Flags of artuneAllReduceRMSNorm. */
typedef enum { artuneNormOnePlusWeight = 1 /* scale by 1 + weight, as Gemma does */ } artuneNormFlags_t;

/* All-reduce of `input` over all ranks, residual add and RMSNorm of each row, in one launch where the profile says that it
 * pays; asynchronously on `stream`. Tensors are rows x hidden, contiguous; `weight` has hidden elements, the same on all ranks,
 * as `residual` is:
 *   s = sum over ranks, rounded to the type        residualOut = s + residual in fp32, rounded to the type
 *   output = residualOut / sqrt(mean of its squares over the row + eps) * weight in fp32, rounded to the type once
 * float16 or bfloat16; hidden 64 to 16384, a multiple of 8; eps not negative; all buffers 16-byte aligned. output may be
 * input, residualOut may be residual; otherwise they are disjoint. rows 0 does nothing.
 * The bits are those of artuneAllReduce by the same candidate followed by the norm, whatever serves the call. Groups, capture
 * and failures as artuneAllReduce; a call that failed leaves NaN in `output`. */
ARTUNE_API artuneResult_t artuneAllReduceRMSNorm(const void* input, const void* residual, const void* weight, void* output,
                                                 void* residualOut, size_t rows, size_t hidden, float eps, unsigned flags,
                                                 artuneDataType_t datatype, artuneComm_t comm, cudaStream_t stream);

/* Calls between the two are issued at the outermost end, call by call over the ranks. Per thread; groups nest. */
ARTUNE_API artuneResult_t artuneGroupStart(void);
ARTUNE_API artuneResult_t artuneGroupEnd(void);

/* artuneSuccess in *asyncError while all is well. */
ARTUNE_API artuneResult_t artuneCommGetAsyncError(artuneComm_t comm, artuneResult_t* asyncError);
ARTUNE_API artuneResult_t artuneCommCount(artuneComm_t comm, int* count);
ARTUNE_API artuneResult_t artuneCommUserRank(artuneComm_t comm, int* rank);

typedef struct {
  size_t size;                  /* in: sizeof(artuneStats_t) */
  unsigned long long calls;     /* all-reduces enqueued on this rank */
  unsigned long long tuned;     /* of them, chosen by the profile */
  unsigned long long bytes;
  size_t deviceMemoryBytes;     /* of this rank's slabs */
  int profileLoaded;            /* 1: a profile is in force */
} artuneStats_t;
ARTUNE_API artuneResult_t artuneCommStats(artuneComm_t comm, artuneStats_t* stats);

/* What would serve `bytes` of this type, what goes over the links, the class of its sums, and why:
 * "p2p/one-shot/ll 8x512, f32 as bf16 on the wire, numerics wire-bf16-in, by profile …". `capturing` 1 = in a CUDA graph.
 * Writes at most `size` bytes with the final zero. */
ARTUNE_API artuneResult_t artuneExplain(artuneComm_t comm, size_t bytes, artuneDataType_t datatype, int capturing, char* text,
                                        size_t size);

/* Ends every wait of every rank at once; the communicators of all ranks are in state aborted. From any thread. */
ARTUNE_API artuneResult_t artuneCommAbort(artuneComm_t comm);
/* Releases this rank. The last one to be destroyed waits for the group's work (bounded by the timeout) and frees it. */
ARTUNE_API artuneResult_t artuneCommDestroy(artuneComm_t comm);

#ifdef __cplusplus
}
#endif

#endif
