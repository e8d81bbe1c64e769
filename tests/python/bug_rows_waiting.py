"""Reports that have no test yet, with the reason."""

from bug_rows import waiting

GPU = "needs a GPU"
AOT = "ahead-of-time libraries are not there"
RANDOM = "random numbers have tests of their own kind (seeds and distributions)"
SPEED = "is about speed: bench/"

for report in ("pytorch#138772", "pytorch#197615", "pytorch#96693", "pytorch#128424"):
    waiting(report, GPU)
for report in ("pytorch#154301", "pytorch#159525"):
    waiting(report, f"{GPU}; {SPEED}")
waiting("torchtitan#2430", "needs a result of 8 GB; indices are 64 bits wide until 32 are proved to do")
waiting("pytorch#107066", "jagged tensors are not there")
waiting("pytorch#179232", "kernels of the user's are not there")
for report in ("pytorch#112449", "pytorch#118735", "pytorch#141645", "pytorch#142853", "pytorch#183249"):
    waiting(report, RANDOM)
waiting("pytorch#178084", "the sum of squares is infinite in eager on a CPU, too, which gives NaN")
for report in (
    "pytorch#122084", "pytorch#125657", "pytorch#140053", "pytorch#142246", "pytorch#144459", "pytorch#149243",
    "pytorch#148937", "pytorch#153363", "pytorch#155642", "pytorch#179225",
):
    waiting(report, AOT)
waiting("pytorch#154094", SPEED)
waiting("pytorch#122652", "no small exported language model at hand; tests/models compares a GPT-2 with float64")
waiting("pytorch#173679", "needs a network file system")
waiting("pytorch#174747", "no code depends on the hint of a size")
waiting("pytorch#192042", "there are no passes of the user's")
waiting("pytorch#196993", "needs a quota of files")
waiting("pytorch#91005", "needs a file system mounted noexec")
waiting("pytorch#92745", "tests/error/command.txt: no compiler is one error that names the package")
waiting("pytorch#130815", "needs an old compiler")
for report in ("pytorch#135954", "pytorch#152251"):
    waiting(report, "Windows is not a target")
for report in ("pytorch#98835", "pytorch#94831", "pytorch#178482"):
    waiting(report, "Dynamo does not trace it: eager runs it, coil never sees it")
