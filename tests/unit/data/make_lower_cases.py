"""Writes lower_cases.txt: one op each, its arguments, and what eager PyTorch gives (2.15 made it).

    python make_lower_cases.py lower_cases.txt

CASE name / T tensor (dtype, rank, shape, strides, count, elements in memory order) / OP name /
TOL relative tolerance / ARG kind value, in schema order / OUT tensor / END. lower_cases_test.cpp reads
it. A new op: one line here.
"""
import sys
import torch

torch.manual_seed(0)
DT={torch.float32:'f32',torch.float64:'f64',torch.float16:'f16',torch.bfloat16:'bf16',torch.int64:'i64',torch.int32:'i32',torch.uint8:'u8',torch.bool:'bool',torch.int8:'i8',torch.int16:'i16',torch.complex64:'c64',torch.complex128:'c128',torch.uint64:'u64'}
out=open(sys.argv[1],'w')
count=0; names={}
def tens(t):
    t=t.detach()
    n=1+sum((s-1)*st for s,st in zip(t.shape,t.stride())) if t.numel() else 0
    flat=t.as_strided((n,),(1,),t.storage_offset()) if n else t.reshape(-1)
    if t.is_complex(): vals=torch.view_as_real(flat.contiguous()).reshape(-1).tolist()
    else: vals=flat.view(torch.int64 if t.dtype==torch.uint64 else t.dtype).tolist()
    digits='%.17g' if t.dtype in (torch.float64,torch.complex128) else '%.9g'
    s=' '.join((digits%v if isinstance(v,float) else str(int(v))) for v in vals)
    return f"{DT[t.dtype]} {t.dim()} {' '.join(map(str,t.shape))} {' '.join(map(str,t.stride()))} {len(vals)} {s}"
def case(op,*args,ref=None,tol=None,name=None,nout=None,refargs=None,**kw):
    """args in schema order"""
    global count
    base=name or op.replace('.','_')
    names[base]=names.get(base,0)+1
    nm=f"{base}#{names[base]}"
    L=[f"CASE {nm}"]; ts=[]; A=[]
    def reg(t):
        for i,u in enumerate(ts):
            if u is t: return i
        ts.append(t); return len(ts)-1
    for a in args:
        if isinstance(a,torch.Tensor): A.append(f"ARG T {reg(a)}")
        elif isinstance(a,bool): A.append(f"ARG B {int(a)}")
        elif isinstance(a,int): A.append(f"ARG I {a}")
        elif isinstance(a,float): A.append(f"ARG F {a!r}")
        elif a is None: A.append("ARG N")
        elif isinstance(a,str): A.append(f"ARG S {a}")
        elif isinstance(a,torch.dtype): A.append(f"ARG D {DT[a]}")
        elif isinstance(a,(list,tuple)):
            if any(isinstance(x,torch.Tensor) for x in a): A.append(f"ARG TL {len(a)} "+' '.join(str(reg(x)) if x is not None else '-1' for x in a))
            elif a and all(isinstance(x,bool) for x in a): A.append(f"ARG BL {len(a)} "+' '.join(str(int(x)) for x in a))
            elif any(isinstance(x,float) for x in a): A.append(f"ARG FL {len(a)} "+' '.join(repr(x) for x in a))
            else: A.append(f"ARG L {len(a)} "+' '.join(str(x) for x in a))
        else: raise Exception(a)
    try:
        if ref is not None: r=ref(*(refargs if refargs is not None else args))
        else:
            n,_,o=op.partition('.')
            f=getattr(getattr(torch.ops.aten,n),o or 'default')
            sch=f._schema; pos=[];kws={}
            for i,a in enumerate(args):
                if sch.arguments[i].kwarg_only: kws[sch.arguments[i].name]=a
                else: pos.append(a)
            r=f(*pos,**kws)
    except Exception as e:
        print("gen", nm, str(e)[:150]); return
    if isinstance(r,torch.Tensor): r=[r]
    r=list(r)
    if nout: r=r[:nout]
    for t in ts: L.append("T "+tens(t))
    L.append("OP "+op)
    if tol: L.append(f"TOL {tol}")
    L+=A
    for t in r: L.append("OUT "+tens(t))
    L.append("END")
    out.write('\n'.join(L)+'\n'); count+=1
r=torch.randn
f=r(3,5); f2=r(3,5); d=r(3,5,dtype=torch.float64); h=r(3,5).bfloat16(); hh=r(3,5).half(); i=torch.randint(-9,9,(3,5)); i32=torch.randint(-9,9,(3,5),dtype=torch.int32); b=r(3,5)>0
special=torch.tensor([[float('nan'),float('inf'),-float('inf'),0.,-0.],[1,-1,2.5,-2.5,0.5],[1e-40,1e30,-1e30,20,-20]])
pos=f.abs()+0.1; unit=(torch.rand(3,5)*1.8-0.9)
# unary
for op in "neg abs sign square relu relu6 sigmoid silu tanh exp expm1 sin cos tan atan sinh cosh asinh erf erfc floor ceil trunc round frac hardswish hardsigmoid hardtanh gelu softplus mish selu elu celu leaky_relu hardshrink softshrink isnan isinf isfinite isposinf isneginf signbit logical_not nan_to_num positive sgn exp2 sinc deg2rad rad2deg angle reciprocal clone log_sigmoid".split():
    ref=None
    if op=='log_sigmoid': ref=torch.nn.functional.logsigmoid
    for x in (f,d,h,hh,special): case(op,x,ref=ref)
for op in "sqrt rsqrt log log2 log10 log1p lgamma digamma".split():
    for x in (pos,pos.double(),pos.bfloat16(),special): case(op,x, tol=2e-5 if op in('lgamma','digamma') and x.dtype==torch.float32 else None)
for op in "asin acos atanh erfinv logit".split():
    for x in (unit.abs()*.9+.05,(unit.abs()*.9+.05).bfloat16()): case(op,x,tol=1e-5 if x.dtype==torch.float32 else None)
case('acosh',pos+1); case('logit',unit.abs(),1e-3)
for op in "neg abs sign square relu exp sqrt sigmoid bitwise_not logical_not isnan isfinite floor ceil sgn tanh".split():
    case(op,i); case(op,i32)
case('bitwise_not',b); case('logical_not',b); case('sin',b)
# binary
for op in "add.Tensor sub.Tensor mul.Tensor div.Tensor".split():
    for x,y in ((f,f2),(h,h.flip(0)),(i,f),(f,r(5)),(r(3,1),r(1,5)),(d,f),(f,torch.tensor(2.5,dtype=torch.float64)),(i,i32),(h,f),(f.t().contiguous().t(),f2)): case(op,x,y)
case('add.Tensor',b,b); case('mul.Tensor',b,b); case('add.Tensor',f,f2,2.5); case('sub.Tensor',i,i32,3); case('add.Scalar',i,2.5); case('add.Scalar',h,0.1); case('mul.Scalar',h,0.1); case('rsub.Scalar',f,1,2); case('div.Scalar',i,2); case('div.Scalar',h,3.0); case('rsub.Tensor',f,f2)
for mode in ('floor','trunc'):
    for x,y in ((i,torch.where(i32==0,3,i32)),(f,f2),(special,f2),(h,h.flip(0))): case('div.Tensor_mode',x,y,mode)
    case('div.Scalar_mode',i,4,mode); case('div.Scalar_mode',f,-0.7,mode)
nz=torch.where(i==0,4,i)
for op in "floor_divide remainder.Tensor fmod.Tensor".split(): case(op,i,nz); case(op,f,f2)
case('remainder.Scalar',i,5); case('remainder.Scalar',f,-1.5); case('fmod.Scalar',i,5)
case('pow.Tensor_Tensor',pos,f); case('pow.Tensor_Tensor',i,i.abs()); case('pow.Scalar',2,f); case('pow.Scalar',2.0,i)
for e in (0,1,2,3,0.5,-0.5,-1,-2,2.7): case('pow.Tensor_Scalar',pos,e); case('pow.Tensor_Scalar',pos.bfloat16(),e)
case('pow.Tensor_Scalar',i,2); case('pow.Tensor_Scalar',i,5); 
for op in "eq ne lt le gt ge".split():
    case(op+'.Tensor',f,f2); case(op+'.Tensor',i,f); case(op+'.Scalar',h,0.1); case(op+'.Scalar',i,2); case(op+'.Scalar',i,2.5); case(op+'.Tensor',b,b.flip(0)); case(op+'.Scalar',f,0)
case('eq.Scalar',torch.tensor([0.1]).bfloat16(),0.1)
for op in "logical_and logical_or logical_xor".split(): case(op,f,i); case(op,b,b.flip(0))
for op in "bitwise_and bitwise_or bitwise_xor".split(): case(op+'.Tensor',i,i32); case(op+'.Tensor',b,b.flip(1)); case(op+'.Scalar',i,6)
case('bitwise_left_shift.Tensor',i,i.abs()); case('bitwise_right_shift.Tensor',i,i.abs()); case('bitwise_right_shift.Tensor_Scalar',i,1)
case('where.self',b,f,f2); case('where.self',b,i,f); case('where.ScalarOther',b,f,0.5); case('where.ScalarSelf',b,1,h); case('where.Scalar',b,1.0,2.0)
case('masked_fill.Scalar',f,b,-1e9); case('masked_fill.Tensor',h,b,torch.tensor(3.0)); case('masked_fill.Scalar',i,b,7)
for op in "minimum maximum fmin fmax atan2 hypot copysign.Tensor logaddexp logaddexp2 nextafter heaviside".split(): case(op,f,f2); case(op,special,f2); case(op,f2,special)
case('maximum',i,i32); case('fmax',i,i); case('clamp',f,-0.5,0.5); case('clamp',f,None,0.5); case('clamp',f,-0.1); case('clamp',i,-2,3); case('clamp.Tensor',f,f2); case('clamp.Tensor',f,None,f2); case('clamp',special,-1.0,1.0); case('clamp',h,-0.3,0.3)
case('clamp_min',f,0.2); case('clamp_max',f,0.2)
case('xlogy.Tensor',torch.tensor([0.,1,2,float('nan')]),torch.tensor([0.,2,float('nan'),1]))
case('lerp.Scalar',f,f2,0.3); case('lerp.Scalar',f,f2,0.8); case('lerp.Tensor',f,f2,torch.rand(3,5)); case('addcmul',f,f2,f,2.0); case('addcdiv',f,f2,pos); case('addcdiv',f,f2,pos,0.5)
case('gelu',f,'tanh'); case('gelu',h,'tanh'); case('gelu',special,'tanh'); case('round.decimals',f,2); case('round.decimals',f*100,-1); case('threshold',f,0.1,9.0); case('leaky_relu',f,0.2); case('elu',f,0.7); case('elu',f,0.7,1.5,0.8); case('celu',f,0.7); case('softplus',f*20,2.0,5.0); case('hardtanh',f,-0.3,0.4); case('_prelu_kernel',r(2,3,4),torch.rand(3,1))
case('_to_copy',f,torch.bfloat16); case('_to_copy',h,torch.float16); case('_to_copy',f*5,torch.int64); case('_to_copy',i,torch.bool); case('_to_copy',b,torch.float32); case('_to_copy',i,torch.uint8,ref=lambda a,t:a.to(t)); case('_to_copy',d,torch.bfloat16); case('_to_copy',i,torch.float16); case('copy',f,i)
case('clone',f.t()); case('clone',f.t(),ref=lambda a:a.clone()); case('clone',r(2,3,4,5).permute(0,3,1,2))
case('sigmoid_backward',f,f2); case('tanh_backward',f,f2); case('threshold_backward',f,f2,0); case('gelu_backward',f,f2); case('gelu_backward',f,f2,'tanh'); case('silu_backward',f,f2)
for op in "hardswish_backward mish_backward".split(): case(op,f,f2*3); case(op,h,h.flip(0)); case(op,f,special)
for op in "hardshrink_backward softshrink_backward".split(): case(op,f,f2,0.5); case(op,h,h.flip(0),0.5); case(op,f,special,0.5)
case('softplus_backward',f,f2*10,1.5,5.0); case('softplus_backward',h,h.flip(0),1,20); case('softplus_backward',f,special,1,20)
for is_result in (False,True): case('elu_backward',f,0.7,1.3,1.1,is_result,f2); case('elu_backward',h,1,1,1,is_result,h.flip(0))
case('logit_backward',f,f2); case('logit_backward',f,unit,0.1); case('logit_backward',h,unit.bfloat16())
# views
x=r(2,3,4); 
def cl(op,*a): case(op,*a)
cl('view',x,[6,4]); cl('view',x,[2,12]); cl('view',x,[24]); cl('view',x,[4,3,2]); cl('view',x,[3,8]); cl('view',x,[2,1,3,2,2]); cl('view',x,[-1,4]); cl('view',r(1),[]); cl('view',r(6,1,4),[2,3,4])
cl('permute',x,[2,0,1]); cl('permute',x,[-1,0,1]); cl('expand',r(3,1),[2,3,4]); cl('expand',r(3,1),[-1,5]); cl('select.int',x,1,2); cl('select.int',x,-1,-1); cl('slice.Tensor',x,2,1,3); cl('slice.Tensor',x,2,0,9,2); cl('slice.Tensor',x,1,-2,9223372036854775807); cl('slice.Tensor',x,1,-5,-1)
cl('unsqueeze',x,1); cl('unsqueeze',x,-1); cl('squeeze.dims',r(2,1,3,1),[1,3]); cl('squeeze.dims',r(2,1,3,1),[0,1]); cl('squeeze.dim',r(2,1,3),1); cl('squeeze',r(2,1,3,1)); cl('diagonal',x); cl('diagonal',x,1,1,2); cl('diagonal',x,-1,0,1); cl('unfold',x,2,2,1); cl('as_strided',x,[3,2],[4,1],2); cl('as_strided',x,[2,2],[1,12]); cl('t',f); cl('transpose.int',x,0,2)
cl('split_with_sizes',x,[1,2],1); cl('unbind.int',x,1); cl('view.dtype',f,torch.int32); cl('alias',x)
c=torch.complex(r(3,4),r(3,4)); c2=torch.complex(r(3,4),r(3,4))
cl('view_as_real',c); cl('view_as_complex',r(3,4,2)); cl('real',c); cl('imag',c); cl('permute',c,[1,0]); cl('select.int',c,0,1); cl('view',c,[4,3])
for op in 'add.Tensor sub.Tensor mul.Tensor div.Tensor'.split(): case(op,c,c2); case(op,c,r(3,4)); case(op,c.to(torch.complex128),c2)
case('mul.Scalar',c,2.5); case('neg',c); case('conj_physical',c); case('abs',c); case('angle',c); case('exp',c); case('complex',r(3,4),r(3,4)); case('polar',torch.rand(3,4),r(3,4)); case('eq.Tensor',c,c); case('clone',c)
# reductions
big=r(3,130); y=r(3,4,5)
for op in ('sum','mean'):
    for t in (f,big,d,h,r(2,70).bfloat16()): case(op,t)
    for dims in ([0],[1],[-1],[0,2],[1,2],[0,1,2]):
        for k in (False,True): case(op+('.dim_IntList' if op=='sum' else '.dim'),y,dims,k)
    case(op+('.dim_IntList' if op=='sum' else '.dim'),y.permute(2,0,1),[1]); case(op+('.dim_IntList' if op=='sum' else '.dim'),h,[1],False,torch.float32)
case('sum',i); case('sum',b); case('sum.dim_IntList',b,[1]); case('sum',i32); case('sum',torch.tensor(2.0)); case('sum',r(0)); case('mean',r(0)); case('mean.dim',r(0,3),[0])
case('prod',f); case('prod.dim_int',y,1); case('prod.dim_int',i,1,True); case('prod',i)
for op in ('amax','amin'): case(op,y,[1]); case(op,y,[]); case(op,y,[0,2],True); case(op,i,[1]); case(op,h,[0]); case(op,special,[1])
case('max',f); case('min',i); case('max',special)
for op in ('any','all'):
    case(op,b); case(op,f); case(op+'.dim',b,1); case(op+'.dim',i,0,True); case(op+'.dims',b,[0,1]); case(op,torch.zeros(3,dtype=torch.uint8))
for op in ('argmax','argmin'):
    case(op,f); case(op,y,1); case(op,y.permute(2,0,1)); case(op,y,-1,True); case(op,torch.randint(0,3,(4,50)),1); case(op,special,1)
for op in ('max.dim','min.dim'): case(op,y,1); case(op,y,0,True); case(op,h,1); case(op,i,1); case(op,special,1)
for op in ('var.correction','var_mean.correction','std.correction'):
    case(op,y,[1]); case(op,big,[1],0); case(op,y,None,1,True); case(op,h,[1]); case(op,y,[0,2],0,True); case(op,big+1000,[1],tol=1e-3)
case('logsumexp',y,[1]); case('logsumexp',special[1:],[1],True); case('logsumexp',big*10,[0,1]); case('logsumexp',torch.full((2,3),-float('inf')),[1])
for o in (2,1,0,float('inf'),-float('inf'),3): case('linalg_vector_norm',y,o,[1]); 
case('linalg_vector_norm',y)
case('cumsum',y,1); case('cumsum',i,0); case('cumsum',b,1); case('cumsum',h,1); case('cumprod',f,1); case('cumsum',torch.tensor(3.0),0); case('cumsum',f,1,torch.float64)
# norms
for op in ('_softmax','_log_softmax'):
    case(op,f,1,False); case(op,y,1,False); case(op,y,0,False); case(op,h,-1,False); case(op,big*5,1,False); case(op,d,1,False); case(op,torch.tensor(2.0),0,False)
case('native_layer_norm',f,[5],r(5),r(5),1e-5); case('native_layer_norm',y,[4,5],None,None,1e-5); case('native_layer_norm',big,[130],r(130),None,1e-6); case('native_layer_norm',h,[5],r(5).bfloat16(),r(5).bfloat16(),1e-5,nout=1,tol=2e-2)
g=r(2,6,3,4); case('native_group_norm',g,r(6),r(6),2,6,12,3,1e-5); case('native_group_norm',g,None,None,2,6,12,2,1e-5); case('native_group_norm',g.to(memory_format=torch.channels_last),r(6),r(6),2,6,12,3,1e-5)
case('_native_batch_norm_legit_no_training',g,r(6),r(6),r(6),torch.rand(6)+.5,0.1,1e-5); case('_native_batch_norm_legit_no_training',g.to(memory_format=torch.channels_last),None,None,r(6),torch.rand(6)+.5,0.1,1e-5)
case('_native_batch_norm_legit_functional',g,r(6),r(6),r(6),torch.rand(6)+.5,True,0.1,1e-5)
# gemm
A=r(4,6);B=r(6,5)
case('mm',A,B); case('mm',A,r(5,6).t()); case('mm',A.double(),B.double()); case('mm',A.bfloat16(),B.bfloat16()); case('mm',torch.randint(-9,9,(3,4)),torch.randint(-9,9,(4,2)))
case('bmm',r(3,4,6),r(3,6,5)); case('bmm',r(3,4,6),r(3,5,6).transpose(1,2)); case('addmm',r(5),A,B); case('addmm',r(4,5),A,B,0.5,2.0); case('addmm',torch.full((5,),float('nan')),A,B,0,1); case('addmm',r(5).bfloat16(),A.bfloat16(),B.bfloat16()); case('baddbmm',r(3,4,5),r(3,4,6),r(3,6,5),2,3)
case('mm',A.t().contiguous().t(),B); case('mm',r(24).view(4,6).flip(0),B)
case('convolution',r(2,3,8,8),r(4,3,3,3),r(4),[1,1],[1,1],[1,1],False,[0,0],1); case('convolution',r(2,4,8,8),r(6,2,3,3),None,[2,2],[1,0],[1,2],False,[0,0],2); case('convolution',r(2,3,9),r(4,3,3),r(4),[2],[1],[1],False,[0],1); case('convolution',r(2,3,5,5),r(3,4,3,3),r(4),[2,2],[1,1],[1,1],True,[1,1],1); case('convolution',r(1,2,4,5,6),r(3,2,2,2,2),r(3),[1,1,1],[0,0,0],[1,1,1],False,[0,0,0],1)
case('convolution',r(2,3,8,8).to(memory_format=torch.channels_last),r(4,3,3,3),r(4),[1,1],[1,1],[1,1],False,[0,0],1)
q=r(2,4,5,8);k=r(2,4,7,8);v=r(2,4,7,6)
S='scaled_dot_product_attention'
case(S,q,k,v,tol=1e-5); case(S,q,q,q,None,0.0,True,tol=1e-5); case(S,q,k,v,r(5,7),tol=1e-5); case(S,q,k,v,r(5,7)>0,tol=1e-5); case(S,q,k,v,r(2,1,5,7)>-1,tol=1e-5); case(S,q,k,v,None,0.0,False,0.3,tol=1e-5); case(S,r(2,5,8),r(2,7,8),r(2,7,8),tol=1e-5); case(S,r(2,4,5,8),r(2,2,7,8),r(2,2,7,8),None,0.0,False,None,True,tol=1e-5)
case(S,r(2,5,4,8).transpose(1,2),r(2,7,4,8).transpose(1,2),r(2,7,4,8).transpose(1,2),tol=1e-5); case(S,r(2,5,8),r(2,7,8),r(2,7,8),r(2,5,7)>0,tol=1e-5)
# index
W=r(10,4); idx=torch.randint(0,10,(3,2))
case('embedding',W,idx); case('embedding',W,torch.tensor(3)); case('embedding',W,idx.int())
case('index.Tensor',y,[torch.tensor([2,0,-1])]); case('index.Tensor',y,[None,torch.tensor([1,3,-4])]); case('index.Tensor',y,[torch.tensor([[0],[2]]),torch.tensor([1,3,0])]); case('index.Tensor',y,[torch.tensor([0,2]),None,torch.tensor([1,4])]); case('index.Tensor',y,[None,None,torch.tensor(2)]); case('index.Tensor',y,[None,torch.tensor([[0,1],[2,3]]),torch.tensor([1,0])])
case('index_put',y,[torch.tensor([2,0])],r(4,5)); case('index_put',y,[torch.tensor([2,0,2]),torch.tensor([1,1,1])],r(5),True); case('index_put',y,[None,torch.tensor([1,-1])],torch.tensor(7.0)); case('index_put',h,[torch.tensor([0,0])],r(2,5).bfloat16(),True)
gi=torch.randint(0,4,(3,2,5)); case('gather',y,1,gi); case('gather',f,1,torch.randint(0,5,(3,7))); case('gather',torch.tensor(2.0),0,torch.tensor(0))
si=torch.stack([torch.randperm(4)[:2] for _ in range(15)]).view(3,5,2).transpose(1,2).contiguous()
case('scatter.src',y,1,si,r(3,2,5)); case('scatter.value',y,1,si,3.5); case('scatter_add',y,1,gi,r(3,2,5)); case('scatter.reduce',y,1,gi,r(3,2,5),'multiply',tol=1e-5); case('scatter.value',i,1,torch.tensor([[0],[1],[2]]),9)
for red in ('sum','prod','mean','amax','amin'):
    for inc in (True,False): case('scatter_reduce.two',y,1,gi,r(3,2,5),red,inc,tol=1e-5); case('scatter_reduce.two',i,1,torch.randint(0,5,(3,4)),torch.randint(-9,9,(3,4)),red,inc)
case('index_select',y,1,torch.tensor([3,0,0])); case('index_select',y,0,torch.tensor(1)); case('index_add',y,1,torch.tensor([0,0,3]),r(3,3,5)); case('index_add',y,1,torch.tensor([0,2]),r(3,2,5),2.5); case('index_copy',y,1,torch.tensor([2,0]),r(3,2,5)); case('index_fill.int_Scalar',y,1,torch.tensor([0,-1]),3.0); case('index_fill.int_Tensor',y,2,torch.tensor([1]),torch.tensor(2.0))
case('nonzero',b); case('nonzero',torch.tensor([0,3,0,5])); case('nonzero',torch.zeros(3)); case('nonzero',y>0)
# copies
case('cat',[f,f2]); case('cat',[f,r(3,2),f2],1); case('cat',[y,r(3,4,2)],-1); case('cat',[f,d],0); case('cat',[r(0),r(2)]); case('cat',[i,f]); case('cat',[c,c2]); case('cat',[f])
case('constant_pad_nd',y,[1,2]); case('constant_pad_nd',y,[1,2,0,3],2.5); case('constant_pad_nd',y,[-1,1,1,-2],1.0); case('constant_pad_nd',i,[1,0],-3); case('constant_pad_nd',h,[0,2],0.1)
case('flip',y,[0,2]); case('flip',y,[-1]); case('roll',y,[2],[1]); case('roll',y,[1,-2],[0,2]); case('roll',y,[3]); case('repeat',f,[2,3]); case('repeat',f,[2,1,2]); case('repeat',r(3,1),[1,4])
case('tril',f); case('triu',f,1); case('tril',y,-1); case('triu',i)
case('reflection_pad1d',y,[2,1]); case('reflection_pad2d',g,[1,2,2,1]); case('replication_pad2d',g,[1,2,2,3]); case('replication_pad1d',y,[2,1])
# create
case('full',[2,3],2.5); case('full',[2,3],7); case('full',[2],True); case('full_like',f,3); case('full',[2,3],1,torch.bfloat16); case('arange',5); case('arange.start_step',1,10,2); case('arange.start_step',0.5,3.0,0.7); case('arange.start',2,6,torch.float32); case('linspace',0,1,7); case('linspace',-3.0,5.0,4); case('linspace',2,2,1); case('eye',3); case('eye.m',3,5); case('scalar_tensor',2.5)
case('full',[],3,torch.int32); case('full',[2,2],2.7,torch.int64)
# pool
P=r(2,3,9,10)
case('max_pool2d_with_indices',P,[3,3],[2,2],[1,1]); case('max_pool2d_with_indices',P,[2,2]); case('max_pool2d_with_indices',P,[3,2],[2,2],[1,0],[2,1],True); case('max_pool2d_with_indices',P.to(memory_format=torch.channels_last),[3,3],[2,2],[1,1]); case('max_pool3d_with_indices',r(1,2,5,6,7),[2,2,2]); case('max_pool2d_with_indices',r(3,9,10),[3,3],[2,2],[1,1]); case('max_pool2d_with_indices',P,[3,3],[2,2],[1,1],nout=1)
case('avg_pool2d',P,[3,3],[2,2],[1,1]); case('avg_pool2d',P,[3,3],[2,2],[1,1],True,False); case('avg_pool2d',P,[3,3],[2,2],[1,1],True,True); case('avg_pool2d',P,[2,2],[],0,False,True,3,ref=lambda a,*_:torch.nn.functional.avg_pool2d(a,2,divisor_override=3)); case('avg_pool1d',r(2,3,9),[3],[2],[1]); case('avg_pool3d',r(1,2,5,6,7),[2,2,2]); case('avg_pool2d',P.bfloat16(),[3,3],[2,2],[1,1])
case('_adaptive_avg_pool2d',P,[1,1]); case('_adaptive_avg_pool2d',P,[3,5]); case('_adaptive_avg_pool2d',P,[4,4]); case('_adaptive_avg_pool3d',r(1,2,5,6,7),[2,3,3]); case('adaptive_max_pool2d',P,[4,3]); case('adaptive_max_pool2d',P,[3,5])
# resample
for op in ('upsample_nearest2d.vec','_upsample_nearest_exact2d.vec'):
    case(op,P,[18,20],None); case(op,P,[13,7],None); case(op,P,None,[2.0,2.0]); case(op,P,None,[1.7,0.6])
case('upsample_nearest1d.vec',y,[9],None); case('upsample_nearest1d.vec',y,None,[3.0])
for al in (False,True): case('upsample_bilinear2d.vec',P,[18,20],al,None,tol=1e-5); case('upsample_bilinear2d.vec',P,[5,4],al,None,tol=1e-5); case('upsample_bilinear2d.vec',P,None,al,[1.7,2.5],tol=1e-5); case('upsample_bicubic2d.vec',P,[18,15],al,None,tol=1e-5); case('upsample_linear1d.vec',y,[9],al,None,tol=1e-5)
G=torch.rand(2,4,5,2)*2.6-1.3
for mode in (0,1):
    for pad in (0,1,2):
        for al in (False,True): case('grid_sampler_2d',P,G,mode,pad,al,tol=2e-5)
# sort
case('sort',y); case('sort',y,1); case('sort',y,0,True); case('sort.stable',torch.randint(0,3,(4,6)),True,1,False,ref=lambda a,s,d,e:torch.sort(a,stable=True,dim=d,descending=e)); case('topk',y,2); case('topk',y,3,1,False); case('topk',h,2,1); case('sort',special); case('sort',torch.tensor(3.0))
# rnn
def rnn(kind,layers,bi,bias,bf):
    H,I,T,N=3,4,5,2
    m=getattr(torch.nn,kind.upper() if kind!='rnn_relu' else 'RNN')(I,H,layers,bias=bias,bidirectional=bi,batch_first=bf,**({'nonlinearity':'relu'} if kind=='rnn_relu' else {}))
    D=2 if bi else 1
    x=r(N,T,I) if bf else r(T,N,I); h0=r(layers*D,N,H)
    ps=[p.detach() for p in m._flat_weights]
    hx=[h0,r(layers*D,N,H)] if kind=='lstm' else h0
    op={'lstm':'lstm.input','gru':'gru.input','rnn':'rnn_tanh.input','rnn_relu':'rnn_relu.input'}[kind]
    with torch.no_grad(): case(op,x,hx,ps,bias,layers,0.0,False,bi,bf,tol=1e-5)
for kind in ('lstm','gru','rnn','rnn_relu'):
    rnn(kind,1,False,True,False); rnn(kind,2,True,True,True); rnn(kind,1,False,False,True)
for op in ('any','all'):  # of no dims, unlike other reductions
    case(op+'.dims',r(2,3).round(),[]); case(op+'.dims',r(2,3)>0,[],True)
# linear algebra: what is unique of a factorisation
for t in (torch.float32,torch.float64):
    A=r(4,4,dtype=t); S=A@A.mT+torch.eye(4,dtype=t); W=r(2,3,5,dtype=t); V=r(2,5,3,dtype=t); B=r(2,1,4,2,dtype=t); BA=r(3,4,4,dtype=t); tol=2e-5 if t==torch.float32 else 1e-11
    for x in (S,torch.stack([S,-S,S]),S[:1,:1],S[:0,:0]): case('linalg_cholesky_ex',x,False,False,tol=tol); case('linalg_cholesky_ex',x,True,False,tol=tol)
    for x in (A,A.mT,W,V,V[:0],torch.ones(3,3,dtype=t)): case('linalg_lu_factor_ex',x,True,False,tol=tol)
    for x in (A,W,V):
        LU,p,_=torch.linalg.lu_factor_ex(x); case('lu_unpack',LU,p,True,True); case('lu_unpack',LU,p,False,True); case('lu_unpack',LU,p,True,False)
        q,tau=torch.geqrf(x); case('geqrf',x,tol=tol)
        if x is not W: case('linalg_householder_product',q,tau,tol=tol)
    LU,p,_=torch.linalg.lu_factor_ex(BA)
    for adjoint in (False,True): case('linalg_lu_solve',LU,p,B,True,adjoint,tol=tol); case('linalg_lu_solve',LU,p,B.mT,False,adjoint,tol=tol)
    T=BA+6*torch.eye(4,dtype=t)
    for upper in (False,True):
        for unit in (False,True): case('linalg_solve_triangular',T,B,upper,True,unit,ref=lambda a,b,u,l,n:torch.linalg.solve_triangular(a,b,upper=u,left=l,unitriangular=n),tol=1e-4 if t==torch.float32 else tol); case('linalg_solve_triangular',T,B.mT,upper,False,unit,ref=lambda a,b,u,l,n:torch.linalg.solve_triangular(a,b,upper=u,left=l,unitriangular=n),tol=1e-4 if t==torch.float32 else tol)
    M=BA+BA.mT; M[0,0,0]=M[0,3,3]=0; LD,p,_=torch.linalg.ldl_factor_ex(M); case('linalg_ldl_factor_ex',M,tol=tol); case('linalg_ldl_solve',LD,p,B,tol=5e-5 if t==torch.float32 else tol)
    case('_linalg_eigh',M,'L',False,tol=tol); case('_linalg_eigh',BA,'U',False,tol=tol)
    U=torch.triu(A)+torch.diag(torch.arange(4.)).to(t); case('linalg_eig',U,tol=tol); case('_linalg_eigvals',U,tol=tol)
    for x in (W,V,S[:0]): case('_linalg_svd',x,False,False,tol=tol)
    for x in (A,BA*4,A[:1,:1]): case('linalg_matrix_exp',x,tol=2e-5 if t==torch.float32 else 1e-10)
# special functions: between the places where their formulas change, at edges, in f64
import mpmath
EXACT={'i0e':lambda x: mpmath.besseli(0,x)*mpmath.exp(-abs(x)),'i1e':lambda x: mpmath.besseli(1,x)*mpmath.exp(-abs(x)),'i0':lambda x: mpmath.besseli(0,x),'i1':lambda x: mpmath.besseli(1,x),'k0':lambda x: mpmath.besselk(0,x),'k1':lambda x: mpmath.besselk(1,x),'j0':lambda x: mpmath.besselj(0,x),'j1':lambda x: mpmath.besselj(1,x),'y0':lambda x: mpmath.bessely(0,x),'y1':lambda x: mpmath.bessely(1,x),'ai':mpmath.airyai,'erfcx':lambda x: mpmath.exp(x*x)*mpmath.erfc(x)}
def exactly(op):
    """Eager, its finite numbers replaced with the function itself: its f64 kernels are off by up to 1e-9."""
    name='j0s' if 'spherical' in op else op.rsplit('_',1)[-1]
    function=(lambda x: mpmath.sin(x)/x) if name=='j0s' else (lambda x: EXACT[name](x)*(mpmath.exp(x) if 'scaled' in op else 1))
    def ref(x):
        mpmath.mp.dps=30
        eager=getattr(torch.ops.aten,op)(x)
        return torch.tensor([float(mpmath.re(function(mpmath.mpf(v)))) if abs(e)<float('inf') and e*v!=0 else e for v,e in zip(x.tolist(),eager.tolist())],dtype=x.dtype)
    return ref
near=torch.linspace(-9.7,9.7,41); edge=torch.tensor([float('nan'),0.,-0.,1.,-1.,0.5,20.,-20.,8.,-8.,5.,2.,-2.,-4.,1e-3,30.5]); infs=torch.tensor([float('inf'),-float('inf')])
for op in "special_i0e special_i1e i0 special_i1 special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_airy_ai special_spherical_bessel_j0 special_erfcx".split():
    case(op,near,tol=1e-5); case(op,near.double(),tol=1e-13,ref=exactly(op)); case(op,edge.double(),tol=1e-13,ref=exactly(op)); case(op,infs); case(op,infs.double())
case('special_i0e',h,tol=2e-2); case('i0',i32); case('special_airy_ai',b)
for x in (torch.rand(41),torch.rand(41,dtype=torch.float64),torch.tensor([0.,1.,-0.1,1.1,float('nan'),1e-30,1e-6,0.999]),10.**-torch.arange(1,300,13,dtype=torch.float64)): case('special_ndtri',x)
for n in range(5): case('polygamma',n,pos*9,tol=1e-5); case('polygamma',n,(pos*9).double(),tol=1e-8); case('polygamma',n,-pos.double(),tol=1e-8); case('polygamma',n,torch.tensor([0.,-1.,-2.,float('nan'),3.5,-2.5]),tol=1e-5); case('polygamma',n,i32.abs()+1,tol=1e-5)
case('special_zeta',pos+1,pos,tol=1e-5); case('special_zeta',(pos+1.1).double(),(pos*20).double(),tol=1e-12); case('special_zeta.other_scalar',pos+1,2.5,tol=1e-5); case('special_zeta.self_scalar',3.0,pos,tol=1e-5); case('special_zeta',i32.abs()+2,i32.abs()+1,tol=1e-5)
ga=torch.tensor([0.,0.,0.3,1.,2.5,30.,200.,-1.,float('inf'),3.,1e-3]); gx=torch.tensor([0.,1.,0.2,0.7,3.,28.,210.,1.,2.,float('inf'),0.4])
for op in ('igamma','igammac'): case(op,ga,gx,tol=1e-5); case(op,ga.double(),gx.double(),tol=1e-8); case(op,pos.bfloat16(),f2.abs().bfloat16())
px=torch.linspace(-1.6,1.6,9)[:,None]; pn=torch.tensor([-1.,0.,1.,2.,3.7,5.,9.,12.])
for op in "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p".split():
    case('special_'+op,px,pn,tol=1e-5); case('special_'+op,px.double(),pn.double(),tol=1e-12); case('special_'+op+'.x_scalar',0.25,pn,tol=1e-5); case('special_'+op+'.n_scalar',px,4,tol=1e-5); case('special_'+op,i32,i32.abs(),tol=1e-4)
case('gcd',i,i32); case('lcm',i,i32); case('gcd',torch.tensor([-128,0,-6],dtype=torch.int8),torch.tensor([6,0,4],dtype=torch.int8)); case('lcm',torch.tensor([200,0,6],dtype=torch.uint8),torch.tensor([150,0,4],dtype=torch.uint8))
for x in (f,d,h,hh,special,torch.tensor([1e-45,-3e-310],dtype=torch.float64)): case('frexp.Tensor',x)
case('logcumsumexp',y,1); case('logcumsumexp',y,0); case('logcumsumexp',h,1); case('logcumsumexp',special,1); case('logcumsumexp',d*100,1); case('logcumsumexp',torch.tensor(3.0),0); case('logcumsumexp',torch.full((4,),-float('inf')),0)
case('sign',b); case('sgn',b)
# batch norm with statistics of another dtype
case('_native_batch_norm_legit_functional',g.half(),r(6).half(),r(6).half(),r(6).half(),torch.rand(6).half()+.5,True,0.1,1e-5,tol=4e-3); case('_native_batch_norm_legit_functional',g.bfloat16(),r(6),r(6),r(6),torch.rand(6)+.5,True,0.1,1e-5,tol=2e-2)
# pooling and resampling, and their gradients
V=r(2,3,5,6,7); V4=r(3,4,5,6); PC=P.to(memory_format=torch.channels_last); go=lambda o:torch.randn_like(o)
case('adaptive_max_pool3d',V,[2,3,4]); case('adaptive_max_pool3d',V4,[3,2,5])
case('fractional_max_pool2d',P,[2,3],[4,3],torch.rand(2,3,2)); case('fractional_max_pool2d',r(3,7,7),[2,2],[3,3],torch.rand(1,3,2)); case('fractional_max_pool3d',V,[2,2,2],[2,3,3],torch.rand(2,3,3))
for a in ([[3,3],[2,2],[1,1],False,True,None],[[3,2],[2,1],[1,0],True,False,None],[[3,3],[2,2],[1,1],True,True,None],[[2,2],[],[0,0],False,True,3]):
    o=torch.ops.aten.avg_pool2d(P,*a); case('avg_pool2d_backward',go(o),P,*a); case('avg_pool2d_backward',go(o).to(memory_format=torch.channels_last),PC,*a)
o=torch.ops.aten.avg_pool3d(V,[2,3,2],[2,2,1],[1,1,0],True,False); case('avg_pool3d_backward',go(o),V,[2,3,2],[2,2,1],[1,1,0],True,False,None); case('avg_pool2d_backward',go(P[:,:,:3,:3]).bfloat16(),P.bfloat16(),[3,3],[3,3],[0,0],False,True,None)
for n in ([1,1],[3,5],[4,4],[9,12]): case('_adaptive_avg_pool2d_backward',r(2,3,*n),P)
case('_adaptive_avg_pool3d_backward',r(2,3,2,3,4),V); case('_adaptive_avg_pool2d_backward',r(2,3,4,3).half(),P.half())
case('col2im',r(2,12,20),[5,6],[2,2],[1,1],[0,0],[1,1]); case('col2im',r(2,18,9),[6,5],[3,2],[1,2],[1,0],[2,1]); case('col2im',r(12,12).bfloat16(),[5,6],[2,3],[1,1],[1,0],[2,1])
for op,al,x,sizes in (('upsample_nearest1d',(),y,[9]),('upsample_nearest2d',(),P,[18,7]),('upsample_nearest3d',(),V,[5,9,3]),('_upsample_nearest_exact2d',(),P,[13,7]),('upsample_linear1d',(False,),y,[9]),('upsample_linear1d',(True,),y,[9]),('upsample_bilinear2d',(False,),P,[13,20]),('upsample_bilinear2d',(True,),P,[5,4]),('upsample_trilinear3d',(False,),V,[4,9,8]),('upsample_bicubic2d',(False,),P,[13,7]),('upsample_bicubic2d',(True,),P,[5,12])):
    case(op+'_backward',r(*x.shape[:2],*sizes),sizes,list(x.shape),*al,tol=1e-5)
case('upsample_bilinear2d_backward',r(2,3,20,20),[20,20],list(P.shape),False,2.2,2.0,tol=1e-5); case('upsample_bilinear2d_backward',r(2,3,13,20).bfloat16(),[13,20],list(P.shape),False); case('upsample_nearest2d_backward',r(2,3,18,20).to(memory_format=torch.channels_last),[18,20],list(P.shape))
for op in ('_upsample_bilinear2d_aa','_upsample_bicubic2d_aa'):
    for x in (P,P.double(),torch.randint(0,256,(2,3,9,10),dtype=torch.uint8)):
        for al in (False,True): case(op,x,[4,15],al,tol=1e-5 if x.is_floating_point() else None); case(op,x,[9,3],al,tol=1e-5 if x.is_floating_point() else None)
case('_upsample_bilinear2d_aa',P,[5,14],False,0.6,1.4,tol=1e-5); case('_upsample_bilinear2d_aa.vec',P,None,False,[0.5,0.7],tol=1e-5)
U=torch.randint(0,256,(2,3,9,10),dtype=torch.uint8); U5=torch.randint(0,256,(1,5,12,7),dtype=torch.uint8).to(memory_format=torch.channels_last)
for op in ('upsample_bilinear2d','upsample_bicubic2d'):
    for al in (False,True):
        for sizes in ([18,20],[4,3],[9,15],[13,10]): case(op,U,sizes,al); case(op,U5,sizes,al)
    case(op,U,[12,16],False,1.4,1.65); case(op+'.vec',U,None,False,[2.0,1.5])
G3=torch.rand(2,3,4,2,3)*2.6-1.3
for pad in (0,1,2):
    for al in (False,True):
        for mode in (0,1): case('grid_sampler_3d',V,G3,mode,pad,al,tol=2e-5); case('grid_sampler_3d_backward',r(2,3,3,4,2),V,G3,mode,pad,al,[True,True],tol=1e-4)
        case('grid_sampler_2d',P,G,2,pad,al,tol=1e-4)
        for mode in (0,1,2): case('grid_sampler_2d_backward',r(2,3,4,5),P,G,mode,pad,al,[True,True],tol=2e-4)
case('grid_sampler_3d',V.half(),G3.half(),0,0,False)
case('scatter_reduce.two',torch.arange(12.).view(3,4).t(),1,torch.tensor([[0,2],[1,1],[2,0],[0,0]]),torch.arange(8.).view(4,2)-3,'sum',False)  # of a base that is not contiguous
# running extremes: the last of several equal elements, NaN beyond all
ties=torch.randint(0,3,(4,6)).float(); ties[1,2]=ties[2,0]=ties[2,4]=float('nan')
for op in ('cummax','cummin'): case(op,ties,1); case(op,ties,0); case(op,h,1); case(op,i,0); case(op,b,1); case(op,special,1); case(op,torch.tensor(3.0),0); case(op,y.permute(2,0,1),1)
for t in (f,d,h,hh,i,i32,b,special[1:]): case('hash_tensor',t); case('hash_tensor',t,[1],True)
for size in (0,2,40): case('nonzero_static',b,size,ref=lambda t,n:torch.ops.aten.nonzero_static(t,size=n)); case('nonzero_static',ties,size,7,ref=lambda t,n,v:torch.ops.aten.nonzero_static(t,size=n,fill_value=v))
case('nonzero_static',torch.tensor(3.0),2,ref=lambda t,n:torch.ops.aten.nonzero_static(t,size=n)); case('unfold',torch.tensor(3.0),0,1,1); case('unfold',torch.tensor(3.0),0,0,2)
case('sign',b); case('sgn',b); case('index_add',b,1,torch.tensor([0,3,0]),r(3,3)>0,True); case('index_add',b,1,torch.tensor([0,3,0]),r(3,3)>0)
case('grid_sampler_3d',V.half(),G3.half(),0,0,False,tol=2e-2)
# Fourier transforms
Z=r(2,3,5,dtype=torch.complex64); Zp=r(5,2,3,dtype=torch.complex64).permute(1,2,0); X=r(2,3,6)
for dims,scale,forward in (([2],0,True),([2],2,False),([0],1,True),([1],0,False),([2,0],2,True),([0,1,2],1,False),([],0,True)): case('_fft_c2c',Z,dims,scale,forward)
for dims in ([2],[0],[1,2],[2,1,0]): case('_fft_c2c',Zp,dims,0,True); case('_fft_r2c',Zp.real,dims,0,True); case('_fft_c2r',Zp,dims,0,2*(Zp.shape[dims[-1]]-1))
for dims,scale in (([2],0),([1],2),([0,2],1),([2,1],0)):
    for onesided in (True,False): case('_fft_r2c',X,dims,scale,onesided)
    case('_fft_c2r',Z,dims,scale,2*Z.shape[dims[-1]]-2); case('_fft_c2r',Z,dims,scale,2*Z.shape[dims[-1]]-1); case('_fft_c2r',Z,dims,scale,Z.shape[dims[-1]])
for n in (1,2,7,34,37): z=r(2,n,dtype=torch.complex128); case('_fft_c2c',z,[1],0,True); case('_fft_r2c',z.real,[1],2,True); case('_fft_c2r',z[:,:n//2+1],[1],1,n)
case('_fft_c2c',r(3,1,4,dtype=torch.complex64).expand(3,2,4),[2],0,True); case('_fft_c2c',r(0,3,dtype=torch.complex64),[1],0,True); case('_fft_c2c',r(3,0,dtype=torch.complex64),[1],0,True); case('_fft_r2c',r(2,0,4),[2],0,True)
# complex numbers: ops that move elements or add them up, and products
cd=torch.complex128; K=r(3,4,dtype=cd); Kt=r(4,3,dtype=cd).t(); K0=r((),dtype=cd); KV=r(2,5,3,4,dtype=torch.complex64); KI=torch.tensor([[0,2,1,1],[2,2,0,1]]); k1=torch.tensor([3,0,0])
for t in (K,Kt):
    case('gather',t,0,KI); case('gather',t,-1,KI); case('scatter.src',t,0,KI,r(2,4,dtype=cd)); case('scatter.value',t,-1,KI,2.5); case('scatter.reduce',t,1,KI,r(2,4,dtype=cd),'add'); case('scatter.value_reduce',t,1,KI,1.5,'add'); case('scatter_add',t,0,KI,r(2,4,dtype=cd))
    for how in ('sum','mean'): case('scatter_reduce.two',t,1,KI,r(2,4,dtype=cd),how); case('scatter_reduce.two',t,0,KI,r(2,4,dtype=cd),how,False)
    case('index_select',t,-1,k1); case('index_add',t,1,k1,r(3,3,dtype=cd),2.5); case('index_copy',t,-1,k1[:2],r(3,2,dtype=cd)); case('index_fill.int_Scalar',t,-1,k1,2.0); case('index_fill.int_Tensor',t,1,k1,K0)
    case('index.Tensor',t,[None,k1]); case('index_put',t,[k1[1:]],r(2,4,dtype=cd),True); case('flip',t,[-1]); case('roll',t,[1,2],[0,-1]); case('roll',t,[5],[]); case('repeat',t,[2,1,2]); case('cat',[t,r(3,2),t],-1); case('cat',[torch.arange(8).view(2,4),t]); case('tril',t,-1); case('triu',t,1); case('constant_pad_nd',t,[1,2,-1,1],3.0)
    case('prod',t); case('prod.dim_int',t,0); case('prod.dim_int',t,-1,True,torch.complex64); case('cumprod',t,1); case('cumsum',t,-1); case('logsumexp',t,[0]); case('logsumexp',t,[0,1],True); case('logcumsumexp',t,1); case('logaddexp',t,Kt); case('nonzero_static',t.real+t.imag*0,3,ref=lambda t,n:torch.ops.aten.nonzero_static(t,size=n))
    case('as_strided',t,[2,3],[1,4],1)
for op,args in (('gather',(0,torch.tensor(0))),('scatter_add',(0,torch.tensor(0),K0)),('index_add',(0,torch.tensor(0),K0)),('index_select',(0,torch.tensor([0]))),('index_fill.int_Scalar',(0,torch.tensor(0),1.5)),('cumsum',(0,)),('cumprod',(0,)),('logcumsumexp',(0,)),('prod',())): case(op,K0,*args)
case('prod',r(300,dtype=cd)/1.3); case('prod.dim_int',r(70,5,dtype=cd),0); case('prod.dim_int',r(4,3),1,False,torch.complex64); case('cumprod',r(70,dtype=cd),0); case('logsumexp',r(300,dtype=cd)*5,[0]); case('logcumsumexp',r(70,dtype=torch.complex64)*20,0,tol=1e-5); case('prod.dim_int',torch.ones(3,0,dtype=cd),1)
case('index.Tensor',KV,[k1[1:],None,None,k1[:1]]); case('embedding',r(5,3,dtype=cd),torch.tensor([[0,4],[1,1]])); case('reflection_pad1d',KV[0],[1,2]); case('reflection_pad2d',KV,[1,2,2,1]); case('replication_pad1d',KV[0],[1,2]); case('replication_pad2d',KV,[-1,2,2,1]); case('replication_pad3d',KV,[1,0,2,1,1,1]); case('col2im',r(2,12,12,dtype=cd),[4,5],[2,2],[1,1],[0,0],[1,1])
for t in (torch.complex64,cd): case('eye',3,t); case('eye.m',2,3,t); case('linspace',0,3,7,t); case('logspace',0,2,5,10.0,t,tol=1e-5)
sp=torch.complex(torch.tensor([float('inf'),-float('inf'),float('nan'),0.,1.,-float('inf')]),torch.tensor([1.,2.,0.,float('nan'),float('inf'),-1.])); case('logaddexp',sp,sp.flip(0)); case('logaddexp',sp,sp)
for t in (r(40,dtype=cd),r(40,dtype=torch.complex64)):
    case('tanh_backward',t,t.flip(0)); case('sigmoid_backward',t,t.flip(0)); case('log1p',t); case('log1p',t/9); case('atanh',t*torch.tensor(1+1e-3j,dtype=t.dtype))
case('atanh',torch.complex(torch.tensor([-1.,-0.99999,-1.00001,0.9999]),torch.tensor([1e-3,1e-4,1e-3,2e-4])),tol=1e-5); case('log1p',torch.tensor([1e25+1e25j,-1e30j,3e-20+1e-20j]))
# what has no elements to index with, ranges of whole numbers, gradients of antialiased resampling
torch.manual_seed(1)
for d in (torch.uint8,torch.float32): case('gather',f,0,torch.empty(0,*f.shape[1:]).to(d)); case('scatter_add',f,0,torch.empty(0,*f.shape[1:]).to(d),f)
for start,end,steps in ((4.3,-3,50),(12.13,-14.3,59),(-7,15.9,1),(-2.5,7,8)): case('linspace',start,end,steps,torch.int64); case('linspace',abs(start),abs(end),steps,torch.uint8)
case('arange.start_step',0.5,5,1.5,torch.int64); case('arange.start_step',2.9,-5.5,-1.7,torch.int32); case('arange.start_step',False,True,True,torch.float32)
for op in ('_upsample_bilinear2d_aa_backward','_upsample_bicubic2d_aa_backward'):
    for sizes in ([4,15],[9,3],[9,10],[20,7]): case(op,r(2,3,*sizes),sizes,[2,3,9,10],False,tol=1e-5); case(op,r(2,3,*sizes).double(),sizes,[2,3,9,10],True,tol=1e-5)
    case(op,r(2,3,5,14).to(memory_format=torch.channels_last),[5,14],[2,3,9,10],False,0.6,1.4,tol=1e-5); case(op,r(2,3,5,14).bfloat16(),[5,14],[2,3,9,10],False)
# bytes seen as another dtype
for a in (torch.float32,torch.float16,torch.bfloat16,torch.float64,torch.int64,torch.int16,torch.uint8,torch.complex64):
    for d in (torch.float32,torch.float16,torch.bfloat16,torch.float64,torch.int64,torch.int32,torch.int8,torch.complex64):
        if a!=d: case('view.dtype',(r(2,3,8)*20).to(a),d)
case('view.dtype',r(4,6)[:,:2],torch.int16); case('view.dtype',torch.tensor(1.5,dtype=torch.float64),torch.complex64); case('view.dtype',r(3,0),torch.int8)
# indices without elements, of other dims
none=torch.empty(0,dtype=torch.int64)
case('gather',r(3,2),0,none); case('scatter.src',r(3,2),0,none,r(1)); case('scatter.value',r(3,2),0,none,1); case('scatter_add',r(3,2),0,none,r(1)); case('scatter_reduce.two',r(3,2),0,none,r(1),'mean',False)
# parts of factors are moved elements, of any dtype
P=torch.tensor([2,3,3],dtype=torch.int32)
for t in (torch.float16,torch.bfloat16,torch.int64,torch.uint8,torch.bool): case('lu_unpack',(r(3,4)*3).to(t),P,True,True)
case('lu_unpack',r(3,4),r(2),True,False)
case('sum.dim_IntList',torch.tensor([[0.5,0],[-0.5,0]]),[0],False,torch.bool); case('_fft_r2c',r(2,6),[1],5,True,tol=1e-5); case('_fft_c2c',r(2,6).to(torch.complex64),[1],-1,True,tol=1e-5)
# a number's dims: its parts are none of them
for op in ('sum.dim_IntList','mean.dim'): case(op,K0,[0],False); case(op,K0,[-1],True)
case('prod.dim_int',b,1,False,torch.bool); case('prod',b,torch.bool)
# ends of ranges as u8 holds them, products of nothing, weights of any shape, images that keep their size
for start,end,steps,base in ((True,-2,3,0.5),(4,-2,7,0.5),(-255,3,9,0.5)): case('linspace',start,end,steps,torch.uint8); case('logspace',start,end,steps,base,torch.uint8)
case('inner',r(2,0),r(3,0)); case('inner',r(0,2,3),r(4,3)); case('inner',r(2,2,3),r(4,3),tol=1e-5)
for s in ((1,3),(3,1)): case('_native_batch_norm_legit.no_stats',r(4,3,2),r(s),r(s),True,0.1,1e-5,tol=1e-5); case('batch_norm',r(4,3,2),r(s),r(s),r(3),torch.rand(3)+.5,False,0.1,1e-5,True,tol=1e-5)
for d in (torch.int64,torch.bool): case('_upsample_bilinear2d_aa',(r(1,2,3,4)*3).to(d),[3,4],False); case('_upsample_bicubic2d_aa.vec',(r(1,2,3,4)*3).to(d),None,False,[1.0,1.0])
# bounds that integers end before
for x in (torch.tensor([0,1,200],dtype=torch.uint8),torch.tensor([-128,1,127],dtype=torch.int8)): case('clamp',x,-200,5); case('clamp_min',x,-300); case('clamp_max',x,300); case('hardtanh',x,-200,300); case('hardtanh',x,-1.5,5.7)
# a range of one step: the exponent is not rounded to the half float
case('logspace',4.3,7.0,1,10.0,torch.bfloat16); case('logspace',13.3,4.7,1,2.0,torch.float16)
# images put together along a dim, which is split, or copied around
img=torch.arange(24.).view(1,2,3,4).to(memory_format=torch.channels_last)
for d in range(5): case('stack',[img,img+1],d)
case('pad',img,[1,0,0,1],'circular'); case('pad',torch.ones(1).expand(2,1),[0,0],'circular')
# a condition of bytes, which is converted
case('where.self',torch.ones(1,dtype=torch.uint8).expand(1,2,2,1),torch.arange(2.).as_strided((1,2,1,1),(6,1,3,3)),torch.ones(1))
# means of infinite elements: an update that is the last one keeps the infinity, and a batch's mean is a sum
inf=float('inf'); batch=torch.tensor([[inf,1.],[2.,-inf],[inf,3.]])
for x in (torch.tensor([-inf]),torch.tensor([[inf],[1.]])): case('var_mean.dim',x,[-1],False); case('std_mean.dim',x,[-1],True)
case('_native_batch_norm_legit_functional',batch,None,None,torch.zeros(2),torch.ones(2),True,0.25,1e-5); case('native_layer_norm',batch,[2],None,None,1e-5)
# an alpha of 0 drops a product, even an infinite one, where eager calls BLAS
for dt in (torch.float32,torch.float64,torch.bfloat16):
    bad,x,c=torch.full((2,3),inf,dtype=dt),torch.ones(3,2,dtype=dt),torch.tensor([-0.,2.],dtype=dt)
    for beta,alpha in ((1,0),(0,-0.),(-1,0)): case('addmm',c,bad,x,beta,alpha); case('addmv',c,bad,x[:,0],beta,alpha); case('addbmm',c,bad[None],x[None],beta,alpha)
# what comes beside the bags: the sizes, but of a sum's; a scale that leads beyond the image; no smoothing
table,lines,starts=torch.arange(12.).view(4,3),torch.tensor([0,2,1,3]),torch.tensor([0,0,3])
for mode in (0,1,2): case('_embedding_bag',table,lines,starts,False,mode,False,None,False,-1)
case('upsample_linear1d',torch.tensor([[[7.,2.,inf]]]),[2],False,1e-5); case('upsample_bicubic2d',torch.arange(12.).view(1,1,3,4),[2,2],False,0.3,0.4)
case('cross_entropy_loss',table[:2],torch.tensor([1,2]),None,1,-100,-0.5); case('cross_entropy_loss',table[:2],table[:2]/10,None,1,-100,-0.5)
# complex products are contiguous, whatever is added to them; targets of bytes
m=torch.arange(6.).view(2,3)+1j; p=m.mT.contiguous(); added=torch.arange(4.).view(2,2).mT+2j
case('addmm',added,m,p); case('addmm',added,m,p,0.5,2.0); case('baddbmm',added[None],m[None],p[None])
case('nll_loss_nd',table[:2]/10,torch.tensor([1,2],dtype=torch.uint8)); case('nll_loss_nd',table[:2]/10,torch.tensor([1,2],dtype=torch.uint8),None,0,1)
# a fraction is true; a slice of one element; memory of what is sorted down the columns
case('constant_pad_nd',torch.tensor([[True]]),[2,1],0.5); case('constant_pad_nd',torch.tensor([[3]]),[1,1],-1.5); case('full',[2],0.5,torch.bool); case('index_copy',table[0],0,torch.tensor([1]),torch.tensor(5.))
case('channel_shuffle',r(1,4,2,3,2).contiguous(memory_format=torch.channels_last_3d),2)
for reduction in (0,1,2): case('cross_entropy_loss',r(2,0),r(2,0),None,reduction,-1,0.0)  # of no classes
print(count,'cases')
