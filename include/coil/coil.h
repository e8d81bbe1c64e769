/* The C interface of coil: compile a model file, call it, read the results.
 *
 * No function prints, exits or lets an exception out. Functions that can fail take `char** error`:
 * on failure they store a message there (free it with coil_free_text), on success they leave it
 * alone; it may be NULL. All functions are safe from many threads at once; calls on one model with
 * state take turns. */
#ifndef COIL_COIL_H
#define COIL_COIL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types; the names are those of coil's text forms. */
typedef enum coil_dtype {
  COIL_U8,
  COIL_I8,
  COIL_I16,
  COIL_I32,
  COIL_I64,
  COIL_U16,
  COIL_U32,
  COIL_U64,
  COIL_BOOL,
  COIL_F16,
  COIL_BF16,
  COIL_F32,
  COIL_F64,
  COIL_F8E4M3FN,
  COIL_F8E5M2,
  COIL_C32,
  COIL_C64,
  COIL_C128
} coil_dtype;

typedef enum coil_kind {
  COIL_TENSOR,
  COIL_INT,
  COIL_FLOAT,
  COIL_TRUTH,
  COIL_TEXT,
  COIL_NONE
} coil_kind;

/* An argument or a result. A tensor is a view: `data` is its first element, strides count elements.
 * In an argument, NULL strides stand for a contiguous tensor, and all pointers must live until the
 * call returns; tensors that the model mutates are written. */
typedef struct coil_value {
  coil_kind kind;
  coil_dtype dtype;       /* tensor */
  int32_t ndim;           /* tensor */
  const int64_t* shape;   /* tensor: ndim sizes */
  const int64_t* strides; /* tensor: ndim strides in elements, none negative */
  void* data;             /* tensor */
  int64_t integer;        /* int; truth: 0 or 1 */
  double real;            /* float */
  const char* text;       /* text */
} coil_value;

typedef struct coil_model coil_model;
typedef struct coil_results coil_results;

/* Compiles a .pt2 or a text file. `options` are `count` texts "key=value", as after -O on the
 * command line; option cache_dir names the folder of compiled programs and objects (none are kept
 * without it) and option cxx the compiler, which else is looked up on the PATH of the process. NULL
 * on failure.
 */
coil_model* coil_load(const char* path, const char* const* options, size_t count, char** error);
void coil_free_model(coil_model* model);
/* The number of inputs, and the name of one (owned by the model; NULL past the end). */
size_t coil_input_count(const coil_model* model);
const char* coil_input_name(const coil_model* model, size_t index);

/* One call. NULL on failure; then state and mutable arguments are as before. */
coil_results* coil_call(coil_model* model, const coil_value* inputs, size_t count, char** error);
size_t coil_result_count(const coil_results* results);
/* A result (all its pointers are owned by `results`, or by the argument that it is a view of). */
coil_value coil_result(const coil_results* results, size_t index);
void coil_free_results(coil_results* results);

void coil_free_text(char* text);

#ifdef __cplusplus
}
#endif
#endif
