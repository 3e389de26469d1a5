// The part of the Kubeflow training operator that makes the pods of its jobs, as it is, with a main
// of our own. The operator's own main insists on webhooks: on a server that listens on every
// address, and on certificates in a folder under /tmp whose name cannot be chosen.
package main

import (
	"flag"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	jobs "github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	core "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
)

func main() {
	health := flag.String("health-probe-bind-address", "127.0.0.1:8081", "where it says that it is ready")
	flag.Parse()
	ctrl.SetLogger(zap.New())

	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerTemplateFile = config.PyTorchInitContainerTemplateFileDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	config.Config.MPIKubectlDeliveryImage = config.MPIKubectlDeliveryImageDefault

	scheme := runtime.NewScheme()
	utilruntime.Must(core.AddToScheme(scheme))
	utilruntime.Must(kubeflow.AddToScheme(scheme))
	utilruntime.Must(coscheduling.AddToScheme(scheme)) // watched where it is installed
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metrics.Options{BindAddress: "0"},
		HealthProbeBindAddress: *health,
	})
	utilruntime.Must(err)
	utilruntime.Must(manager.AddReadyzCheck("readyz", healthz.Ping))
	for _, setUp := range jobs.SupportedSchemeReconciler {
		utilruntime.Must(setUp(manager, common.GenNonGangSchedulerSetupFunc(), 1))
	}
	utilruntime.Must(manager.Start(ctrl.SetupSignalHandler()))
}
