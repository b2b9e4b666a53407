"""Arrays from data, constants, ranges; diagonals and triangles; comparison of wholes."""

from __future__ import annotations

from compat.spec import check
from compat.tables._inputs import rows

TABLE = {
    "jax.numpy.ndarray": check("jnp.ndarray is jax.Array", "isinstance(jnp.ones(2), f)",
                               "isinstance(np.ones(2), f)"),
    "jax.numpy.save": check(
        "import io; b = io.BytesIO(); f(b, jnp.arange(3.)); b.seek(0); np.load(b)"),
    "jax.numpy.savez": check(
        "import io; b = io.BytesIO(); f(b, x=jnp.arange(3.), y=jnp.ones(2, int)); b.seek(0);"
        " z = np.load(b); [z['x'], z['y']]"),
    "jax.numpy.load": check(
        "import io; b = io.BytesIO(); np.save(b, np.arange(3)); b.seek(0); f(b)",
        "import io; b = io.BytesIO(); jnp.save(b, jnp.ones(2, jnp.bfloat16)); b.seek(0); f(b)"),
    "jax.numpy.array": rows("""
        f(1)
        f(1.5)
        f([1,2.5])
        f([1,2],order=None)
        f(a,copy=False)
        f(a,copy=None)
        f([a,a])
        f([v[0],v[1]])
        f([v[0],1])
        f([s,2,k[0]])
        f([[s,1],[2,s]])
        f([v,[1,2,3]])
        f([np.int8(1),np.int16(2)])
        f([np.float64(1),2])
        f([True,1])
        f([True,1.])
    """) + rows("""
        f([[1,2],[3,4]],order='C')
        f([1,2],order='F')
        f([1,2],order='A')
        f([1,2],order='Q')
    """, raises=True),
    "jax.numpy.asarray": rows("""
        f(a,copy=False)
        f(a,copy=True)
        f(np.ones(3,np.float32),copy=False)
        f([1,2],copy=False)
        f(a,dtype='float16',copy=False)
        f(2.5,copy=False)
        f(a,order='K')
        f(1,device=jax.devices()[0])
        f([1.],device=jax.devices('cpu')[0])
    """) + rows("""
        f(a,order='C')
        f(a,order='F')
        f(a,order='A')
        f(None)
    """, raises=True),
    "jax.numpy.zeros": rows("""
        f(2,device=jax.devices()[0])
        f(3)
        f((2,3))
        f([2,3])
        f(())
        f(np.array([2,3]))
        f(np.int64(2))
        f(jnp.array([2,3]))
        f(jnp.array(2))
        f(one)
        f((one,2))
        f(True)
        f((3,),'int4')
        f(2,jnp.float8_e5m2)
        f(2,complex)
        f(2,bool)
    """) + rows("""
        f(2,'U3')
        f(2.)
        f((2,3.))
        f('a')
    """, raises=True),
    "jax.numpy.float32": rows("""
        f([1,2])
    """),
    "jax.numpy.int8": rows("""
        f(3.7)
    """),
    "jax.numpy.bool_": rows("""
        f(2)
    """),
    "jax.numpy.ones": rows("""
        f(3)
        f((2,3),int)
        f((),'uint8')
        f(2,'bfloat16')
    """) + rows("""
        f(-1)
    """, raises=True),
    "jax.numpy.empty": rows("""
        f((2,3))
        f(2,'int8')
    """) + rows("""
        f('q')
    """, raises=True),
    "jax.numpy.full": rows("""
        f(3,2)
        f(3,2.)
        f(3,True)
        f(3,1j)
        f((2,3),s)
        f((2,3),v)
        f((2,3),a)
        f(2,300,'uint8')
        f(2,-1,'uint8')
        f(2,1.7,int)
        f(2,s,int)
        f(2,np.float64(1.5))
        f(2,k[0])
        f((0,),3)
        f(2,np.nan,int)
        f((2,3),v[:1])
    """) + rows("""
        f((2,2),v)
        f((3,),a)
        f(3,[1,2,3])
        f((2,2),'x')
    """, raises=True),
    "jax.numpy.zeros_like": rows("""
        f(a)
        f(1)
        f(1.)
        f(True)
        f(np.ones(2))
        f(a,int)
        f(a,shape=3)
        f(a,shape=(2,))
        f(a,dtype='int8',shape=())
        f(jax.ShapeDtypeStruct((2,),'int32'))
        f(s)
        f(1,shape=(2,))
    """) + rows("""
        f([1,2])
        f('x')
        f(None)
    """, raises=True),
    "jax.numpy.ones_like": rows("""
        f(a)
        f(k,float)
        f(t)
        f(c)
        f(2)
    """) + rows("""
        f({'a':1})
    """, raises=True),
    "jax.numpy.empty_like": rows("""
        f(a)
        f(h,shape=(1,))
    """),
    "jax.numpy.full_like": rows("""
        f(a,2)
        f(k,1.7)
        f(a,v)
        f(1,2.5)
        f(1.,2)
        f(u,300)
        f(u,-1)
        f(a,s,int)
        f(a,v,shape=(3,))
        f(s,2)
        f(1,2,shape=(2,))
        f(jax.ShapeDtypeStruct((2,),'int32'),3)
    """) + rows("""
        f(a,1j)
        f(a,[1,2,3])
        f(a,w)
        f('x',1)
    """, raises=True),
    "jax.numpy.arange": rows("""
        f(3)
        f(3.)
        f(0)
        f(-3)
        f(2,5)
        f(5,2)
        f(5,2,-1)
        f(5,2,-0.5)
        f(0,1,.1)
        f(0,1.05,.1)
        f(1,3,dtype=float)
        f(3,dtype='bfloat16')
        f(3,dtype='complex64')
        f(np.float16(3))
        f(np.int8(5))
        f(np.uint8(2),np.uint8(5))
    """) + rows("""
        f(3,dtype=bool)
        f(0,3,dtype=bool)
        f(2,dtype=bool)
        f(True)
    """, raises=True),
    "jax.numpy.linspace": rows("""
        f(0,1)
        f(0,1,5)
        f(0,1,5,False)
        f(0,1,5,endpoint=False,retstep=True)
        f(0,1,1)
        f(0,1,1,endpoint=False,retstep=True)
        f(0,1,1,retstep=True)
        f(0,1,0)
        f(0,1,0,retstep=True)
        f(0,10,4,dtype=int)
        f(-5,5,4,dtype=int)
        f(0,1,one)
        f(0,fl,4)
        f(v,v+1,4)
        f(v,1,4,axis=1)
        f(v,1,4,axis=-1)
    """, tol="accumulate") + rows("""
        f(0,1,-1)
        f(0,1,3.)
        f(v,1,4,axis=2)
        f(v,w,2)
    """, raises=True),
    "jax.numpy.logspace": rows("""
        f(0,2,3)
        f(0,2,4,False)
        f(0,2,3,base=2)
        f(v,1,3,axis=1)
        f(0,2,3,dtype=int)
        f(0,2,3,base=fl)
        f(0,2,3,base=v)
        f(0,1j,3)
        f(0,1,0)
        f(0,1,3,dtype='float16')
        f(0,1,one)
    """, tol="accumulate") + rows("""
        f(0,1,-1)
    """, raises=True),
    "jax.numpy.geomspace": rows("""
        f(1,100,3)
        f(1,100,3,False)
        f(-1,-100,3)
        f(1,-100,3)
        f(jnp.abs(v)+1,9,3,axis=1)
        f(1,1000,4,dtype=int)
        f(0,1,3)
        f(1j,16j,5)
        f(1,100,1)
        f(1,100,0)
        f(s,9,3)
        f(1,2,3,dtype='bfloat16')
    """, tol="accumulate") + rows("""
        f([1],2)
    """, raises=True),
    "jax.numpy.meshgrid": rows("""
        f(v,w)
        f(v,w,indexing='ij')
        f(v,w,sparse=True)
        f(v,w,k,indexing='xy')
        f(v,w,k,indexing='ij',sparse=True)
        f()
        f(v)
        f(e,v)
        f(v,w,k,c)
    """) + rows("""
        f(1,2.)
        f(s,v)
        f(a,v)
        f([1,2],v)
    """, raises=True),
    "jax.numpy.mgrid": rows("""
        f[0:3]
        f[0:3,1:4]
        f[0:3:2,0.:1:3j]
        f[0:1:5j]
        f[:3]
        f[1:5:2,0:3:1.5]
        f[0:one]
        f[5:0:-1]
        f[()]
        f[0:2,0:2,0:2]
        f[0:]
    """) + rows("""
        f[3]
        f[0:2,1]
        f['a']
        f[0:5j:3]
    """, raises=True),
    "jax.numpy.ogrid": rows("""
        f[0:3]
        f[0:3,1:4]
        f[0:3:2,0:1:3j]
        f[0:1:5j]
        f[()]
    """),
    "jax.numpy.r_": rows("""
        f[1:3]
        f[1:3,0,v]
        f['0,2',v,v]
        f['-1',a,a]
        f['0,2,0',v,v]
        f['1,2,0',v,v]
        f['r',v]
        f['c',v]
        f[1.5,2,3j]
        f[0:1:5j]
        f[[1,2],3]
        f[a,a]
        f[1,v]
        f[True,1]
        f[s,1]
        f['1',a,a]
    """) + rows("""
        f['q',v]
        f[()]
        f['0,3',v,a]
        f['a,b',v]
    """, raises=True),
    "jax.numpy.c_": rows("""
        f[v,v]
        f[1:4,v]
        f[a,a]
        f[1,2]
        f[[1,2],[3,4.]]
        f[x3,x3]
    """),
    "jax.numpy.eye": rows("""
        f(3)
        f(2,3)
        f(3,k=1)
        f(3,k=-1,dtype=int)
        f(3,2,-4)
        f(0)
        f(one)
        f(3,k=one)
        f(np.int8(2))
        f(2,dtype=bool)
        f(2,dtype=complex)
        f(2,dtype='bfloat16')
        f(2,None,0,int)
        f(2,device=jax.devices()[0])
        f(2,k=2**33)
    """) + rows("""
        f(3.)
        f(-1)
        f(2,-1)
        f(3,k=1.)
    """, raises=True),
    "jax.numpy.identity": rows("""
        f(3)
        f(2,int)
        f(one)
        f(True)
    """) + rows("""
        f(2.)
    """, raises=True),
    "jax.numpy.tri": rows("""
        f(3)
        f(3,4,1,int)
        f(2,3,-1)
        f(0)
        f(3,k=one)
        f(one)
        f(2,dtype=bool)
        f(2,dtype=complex)
    """) + rows("""
        f(2.)
        f(-1)
        f(3,k=1.)
    """, raises=True),
    "jax.numpy.tril": rows("""
        f(a)
        f(a,1)
        f(x3,-1)
        f(T2)
        f(cm)
        f(z)
        f(i)
        f(m,10)
    """) + rows("""
        f(v)
        f(s)
        f(k)
        f(a,one)
    """, raises=True),
    "jax.numpy.triu": rows("""
        f(a)
        f(a,1)
        f(x3,-1)
        f(cm,1)
        f(T2)
        f(h16)
        f(m,-10)
        f(m,10)
    """) + rows("""
        f(v)
        f(m,one)
    """, raises=True),
    "jax.numpy.tril_indices": rows("""
        f(3)
        f(3,1,4)
        f(3,-1,2)
        f(one)
        f(3,one)
        f(3,m=2)
    """) + rows("""
        f(3.)
    """, raises=True),
    "jax.numpy.triu_indices": rows("""
        f(3)
        f(3,1,4)
        f(0)
    """),
    "jax.numpy.tril_indices_from": rows("""
        f(a)
        f(m,1)
    """) + rows("""
        f(v)
    """, raises=True),
    "jax.numpy.triu_indices_from": rows("""
        f(m,-1)
    """) + rows("""
        f(x3)
    """, raises=True),
    "jax.numpy.diag_indices": rows("""
        f(3)
        f(3,3)
        f(3,0)
        f(one)
    """) + rows("""
        f(-1)
        f(2,-1)
    """, raises=True),
    "jax.numpy.diag_indices_from": rows("""
        f(m)
    """) + rows("""
        f(a)
        f(v)
    """, raises=True),
    "jax.numpy.mask_indices": rows("""
        f(3,jnp.triu)
        f(3,jnp.tril,-1)
        f(3,jnp.triu,size=9)
        f(3,lambda x,kk: x>0)
        f(3,np.triu)
        f(3,jnp.triu,1)
    """),
    "jax.numpy.diag": rows("""
        f(v)
        f(v,1)
        f(v,-2)
        f(m)
        f(a,1)
        f(a,5)
        f(e)
        f(v,one)
        f(k)
        f(c,1)
        f(t)
        f(b,-1)
        f(z)
    """) + rows("""
        f(x3)
        f(s)
        f([1,2])
        f(v,1.)
    """, raises=True),
    "jax.numpy.diagflat": rows("""
        f(a)
        f(a,1)
        f(s)
        f(2)
        f(k,-1)
    """) + rows("""
        f([1,2])
    """, raises=True),
    "jax.numpy.diagonal": rows("""
        f(a)
        f(x3)
        f(x3,1,1,2)
        f(x3,-1,2,0)
        f(m,9)
        f(m,-9)
        f(m,offset=-1)
        f(T2)
    """) + rows("""
        f(v)
        f(x3,0,1,1)
        f(x3,0,0,5)
        f(m,one)
    """, raises=True),
    "jax.numpy.trace": rows("""
        f(m)
        f(m,1)
        f(x3)
        f(x3,0,1,2)
        f(i)
        f(T2)
        f(m,dtype=int)
        f(h16)
        f(i,dtype='int8')
        f(m,9)
        f(u.reshape(2,2))
        f(z)
    """, tol="accumulate") + rows("""
        f(v)
        f(m,out=1)
    """, raises=True),
    "jax.numpy.vander": rows("""
        f(v)
        f(v,2)
        f(v,increasing=True)
        f(v,0)
        f(k)
        f(c,3)
        f(u,3)
        f(h)
        f(e)
        f(n[:3])
    """, tol="accumulate") + rows("""
        f(a)
        f(v,-1)
        f(v,one)
        f([1,2])
    """, raises=True),
    "jax.numpy.indices": rows("""
        f((2,3))
        f((2,3),float)
        f((2,3),sparse=True)
        f(())
        f((2,0))
        f((one,2))
        f((2,3),dtype='uint8')
        f((),sparse=True)
    """) + rows("""
        f(3)
        f((2,-1))
        f((2,),bool)
        f((2,3.))
    """, raises=True),
    "jax.numpy.fromfunction": rows("""
        f(lambda x,y: x+y,(2,3))
        f(lambda x: x,3)
        f(lambda x,y: x,(2,3),dtype=int)
        f(lambda x:1,(3,))
        f(lambda *a:1,())
        f(lambda x,y:x,(2,0))
        f(lambda x,y: (x,y),(2,2))
        f(lambda x: x>1,(3,),dtype=jnp.int8)
        f(lambda x,y: jnp.dot(x,x),(2,3))
        f(lambda x: x.shape,(3,))
        f(lambda x,y: jnp.stack([x,y]),(2,3))
    """) + rows("""
        f(lambda x,y,p: x*p,(2,3),p=2.)
        f(1,(2,))
    """, raises=True),
    "jax.numpy.frombuffer": rows("""
        f(b'\x01\x02\x03\x04','uint8')
        f(b'\x01\x02\x03\x04','int16',1,2)
        f(b'abcdefgh')
        f(b'','uint8')
        f(bytearray(8),float)
    """) + rows("""
        f(b'abc','int16')
        f('abc')
        f(b'abcd','uint8',10)
    """, raises=True),
    "jax.numpy.fromstring": rows("""
        f('1 2 3',sep=' ')
        f('1,2',dtype=int,sep=',')
        f('1 2 3',int,2,sep=' ')
    """) + rows("""
        f('1')
        f('a b',sep=' ')
    """, raises=True),
    "jax.numpy.fromiter": rows("""
    """) + rows("""
        f([1],int)
    """, raises=True),
    "jax.numpy.fromfile": rows("""
    """) + rows("""
        f('x')
    """, raises=True),
    "jax.numpy.from_dlpack": rows("""
        f(np.arange(3,dtype=np.int32))
        f(jnp.arange(3))
        f(np.ones((2,3),np.float32),copy=True)
        f(np.arange(3,dtype=np.int32),device=jax.devices()[0])
        f(np.ones(2))
        f(a)
    """) + rows("""
        f(3)
    """, raises=True),
    "jax.numpy.copy": rows("""
        f(a)
        f(1)
        f(np.ones(2))
        f(1.5)
    """) + rows("""
        f([1])
        f(s,order='C')
        f(a,order='F')
    """, raises=True),
    "jax.numpy.astype": rows("""
        f(a,int)
        f(a,None)
        f(1,float)
        f(c,float)
        f(a,bool)
        f(n,'int32')
        f(n,'uint8')
        f(i,'uint8')
        f(a,complex)
        f(a,'int4')
        f(t,float)
        f(a,int,copy=True)
        f(a,float,device=jax.devices()[0])
        f(1.5,'float32')
    """) + rows("""
        f([1],float)
        f(a,'U1')
    """, raises=True),
    "jax.numpy.array_equal": rows("""
        f(a,a)
        f(a,v)
        f(a,b)
        f(n,n)
        f(n,n,equal_nan=True)
        f(n,n,True)
        f([1,2],[1,2])
        f(1,1)
        f(k,k*1.)
        f(t,t,equal_nan=True)
        f(e,e)
    """) + rows("""
        f('a','a')
        f(None,1)
    """, raises=True),
    "jax.numpy.array_equiv": rows("""
        f(a,a)
        f(v,a)
        f([1,1],1)
        f(s,1.5)
        f(z,v)
    """) + rows("""
        f(a,b)
        f('a',1)
        f(None,1)
    """, raises=True),
    "jax.numpy.isscalar": rows("""
        f(1)
        f(s)
        f(v)
        f(1.)
        f('a')
        f(np.float32(1))
        f(np.array(1))
        f([1])
        f(None)
        f(True)
    """),
    "jax.numpy.iterable": rows("""
        f(1)
        f([1])
        f(s)
        f(v)
        f('a')
    """),
    "jax.numpy.ndim": rows("""
        f(a)
        f(1)
        f([1])
        f(s)
        f(None)
    """),
    "jax.numpy.shape": rows("""
        f(a)
        f(1.)
        f([[1,2]])
        f('a')
    """),
    "jax.numpy.size": rows("""
        f(a)
        f(a,0)
        f(a,(0,1))
        f(a,-1)
        f([1])
        f(3)
        f(a,())
        f(a,axis=[0])
    """) + rows("""
        f(a,2)
        f(a,(0,0))
    """, raises=True),
}
